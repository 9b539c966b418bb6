// The form of a figure: size and font.
#include "analysis/gnuplot.hpp"

#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

TEST(Gnuplot, NarrowFigureHasASmallFontByDefault) {
  FigureForm form;
  set_size(form, "3.3x2.5");
  EXPECT_EQ(form.points, 8);
  set_font(form, ",9");
  EXPECT_EQ(form.points, 9);
}

TEST(Gnuplot, FileNameIsOneExpression) {
  EXPECT_EQ(gnuplot_file_name("it's.svg"), "'it'.\"\\047\".'s.svg'");
  EXPECT_EQ(gnuplot_file_name("a\n!b.svg"), "'a'.\"\\012\".'!b.svg'");
}

TEST(Gnuplot, SizesAndFontsAreParsed) {
  FigureForm form;
  set_size(form, "3.3x2.4");
  set_font(form, "Times,8");
  EXPECT_EQ(gnuplot_terminal("f.pdf", form), "set terminal pdfcairo size 3.3in,2.4in noenhanced font 'Times,8.0'\n");
  set_font(form, ",9");
  EXPECT_EQ(form.font, "Times");
  EXPECT_EQ(form.points, 9);
  for (const char* wrong : {"", "3", "0.5x2", "3x41", "ax2", "3x2 "})
    EXPECT_THROW(set_size(form, wrong), UsageError) << wrong;
  for (const char* wrong : {"", "Times,3", "Times,x", ",41"}) EXPECT_THROW(set_font(form, wrong), UsageError) << wrong;
}

}  // namespace
}  // namespace verbscope
