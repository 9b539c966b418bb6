// The load of each resource if the operation had another shape, at the same rate: scaled by the closed-form model.
#pragma once

#include "analysis/loads.hpp"
#include "common/record.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

class ShapeLoads {
 public:
  // `loads`: of the record, with the shape of `before`. All must outlive this object.
  ShapeLoads(const Record& record, const Loads& loads, const Prediction& before)
      : record_(record), loads_(loads), before_(before) {}

  // The utilisation of a resource of the machine under test with the shape of `after`. What the model does not know
  // stays as it is.
  double after(const Load& load, const Prediction& after) const;

 private:
  double link_to_nic(const Prediction& after) const;

  const Record& record_;
  const Loads& loads_;
  const Prediction& before_;
};

}  // namespace verbscope
