module github.com/deployctl/deployctl/tools/record

go 1.26.8
