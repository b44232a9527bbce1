// Command readexit is the least that a Go program run as a hook can do: it
// reads its stdin and exits.
package main

import "syscall"

func main() {
	buf := make([]byte, 4096)
	for {
		if n, err := syscall.Read(0, buf); n <= 0 || err != nil {
			return
		}
	}
}
