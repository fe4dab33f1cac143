//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine names what the numbers are taken on.
func machine() string {
	model := "unknown processor"
	cpus, _ := os.ReadFile("/proc/cpuinfo") // it is only to be shown
	for _, line := range strings.Split(string(cpus), "\n") {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d x %s, %s %s, %s", runtime.NumCPU(), model, runtime.GOOS, strings.TrimSpace(string(kernel)), runtime.Version())
}

// load is the load average of the last minute.
func load() (v float64) {
	text, _ := os.ReadFile("/proc/loadavg") // it is only to be shown
	_, _ = fmt.Sscan(string(text), &v)
	return v
}
