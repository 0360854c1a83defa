# Fails if the library LIBRARY calls a function of libm that rounds as it likes: such a function may
# give other bits on another processor. sqrt, fma, ceil and the like are exact everywhere.

execute_process(COMMAND "${NM}" --undefined-only "${LIBRARY}"
                OUTPUT_VARIABLE symbols RESULT_VARIABLE failure)
if(failure OR NOT symbols)
  message(FATAL_ERROR "${NM} cannot read ${LIBRARY}: ${failure}")
endif()
string(REGEX MATCHALL
  " (exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|tan|sincos|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|erf|erfc|lgamma|tgamma|cbrt|hypot)[fl]?\n"
  calls "${symbols}")
if(calls)
  list(REMOVE_DUPLICATES calls)
  string(REGEX REPLACE "[\n;]+" "," calls "${calls}")
  message(FATAL_ERROR "${LIBRARY} calls${calls} of libm; use kernels/cpu/parts/math-inl.h")
endif()
