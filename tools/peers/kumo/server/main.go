// Command server is an emulator of AWS on a loopback port of its own. It prints its URL, and ends with its input.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/sivchari/kumo"
)

func main() {
	s := kumo.NewServer()
	defer s.Close()
	fmt.Println(s.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // whoever started it has ended
}
