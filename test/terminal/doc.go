// Package terminal runs the built commands where people do: on a pseudo-terminal, below a shell, with editors and
// pagers as children, and with keys typed.
//
// # What is not guaranteed
//
// The tests need bash, vim and less, and a /bin/sh with job control that leaves the modes of its terminal alone, as dash does.
// They say so where one is missing.
package terminal
