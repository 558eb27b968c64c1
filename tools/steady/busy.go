package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// holds makes this program, started by itself, a neighbour: it holds that many MiB of memory, or, with 0, computes all
// the time. It ends when its standard input does, with the program that started it.
const holds = "STEADY_NEIGHBOUR_HOLDS"

func init() {
	mib, err := strconv.Atoi(os.Getenv(holds))
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for memory := make([]byte, mib<<20); ; { // every page each second, so that all of it stays resident
		for i := 0; i < len(memory); i += os.Getpagesize() {
			memory[i]++
		}
		if mib > 0 {
			time.Sleep(time.Second)
		}
	}
}

// busy starts neighbours: loops that compute, and one that holds memory. end ends them.
func busy(loops, mib int) (end func(), err error) {
	var inputs []io.Closer
	var running []*exec.Cmd
	end = func() {
		for i, cmd := range running {
			_ = inputs[i].Close()
			_ = cmd.Wait() // it has no result
		}
	}
	self, err := os.Executable()
	if err != nil {
		return end, err
	}
	sizes := make([]int, loops)
	if mib > 0 {
		sizes = append(sizes, mib)
	}
	for _, size := range sizes {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), holds+"="+strconv.Itoa(size))
		input, err := cmd.StdinPipe()
		if err != nil {
			return end, err
		}
		if err := cmd.Start(); err != nil {
			return end, err
		}
		inputs, running = append(inputs, input), append(running, cmd)
	}
	return end, nil
}
