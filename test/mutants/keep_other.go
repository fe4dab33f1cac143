//go:build !linux

package main

// Elsewhere what a broken guard leaves behind stays, and there is no guard.
func adopt() error { return nil }

func sweep() {}
