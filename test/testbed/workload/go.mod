module isthmus.test/workload

go 1.24
