#!/bin/bash
# manual_page.sh HELP2MAN COMMAND NAME VERSION OUTPUT: the manual page of a program or a subcommand, from its --help.
set -euo pipefail
help2man=$1 command=$2 name=$3 version=$4 output=$5

summary=$($command --help | sed '/^$/,$d' | tr '\n' ' ')
summary=${summary#verbscope: }
"$help2man" --no-info --section=1 --source="verbscope $version" --version-string="$version" --name="${summary%% }" \
  --output="$output" "$command"
# help2man names the page by the command, which has a blank, or by its program alone.
sed -i -e "s/^\.TH [^ ]*/.TH ${name^^}/" -e "/^\.SH NAME/{n;s/^.* \\\\- /$name \\\\- /}" "$output"
