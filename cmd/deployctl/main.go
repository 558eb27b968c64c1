// Command deployctl deploys infrastructure so that nothing that dies can hurt it.
package main

func main() {}
