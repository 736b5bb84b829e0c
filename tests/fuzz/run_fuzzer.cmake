# cmake -DFUZZER=FILE -DSAMPLE=FILE -DCORPUS=DIR [-DSECONDS=20] -P run_fuzzer.cmake
if(NOT SECONDS)
  set(SECONDS 20)
endif()
file(MAKE_DIRECTORY ${CORPUS}/seeds ${CORPUS}/found)
execute_process(COMMAND ${SAMPLE} ${CORPUS}/seeds COMMAND_ERROR_IS_FATAL ANY)
# What a run finds is kept for the next one; the first folder is the one that grows.
execute_process(COMMAND ${FUZZER} -max_total_time=${SECONDS} -max_len=20000 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
                        -artifact_prefix=${CORPUS}/crash- ${CORPUS}/found ${CORPUS}/seeds
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the fuzzer found something: run ${FUZZER} ${CORPUS}/crash-... to see it again")
endif()
