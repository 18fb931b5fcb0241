module isthmus.test/nodebox

go 1.24
