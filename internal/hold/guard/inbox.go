package guard

import (
	"encoding/json"
	"os"
)

// inbox reads requests until the pipe ends.
type inbox struct {
	file     *os.File
	requests chan Request
	quit     chan struct{}
	done     chan struct{}
}

// listen starts reading. eof is closed at the pipe's end, before the loop has heard everything that was said
// earlier: nothing is started for a wrapper that is dead.
func listen(file *os.File) (*inbox, <-chan struct{}) {
	in := &inbox{file: file, requests: make(chan Request, 16), quit: make(chan struct{}), done: make(chan struct{})}
	eof := make(chan struct{})
	go in.read(eof)
	return in, eof
}

func (in *inbox) read(eof chan<- struct{}) {
	defer close(in.done)
	defer close(in.requests)
	defer close(eof)
	decoder := json.NewDecoder(in.file)
	for {
		var q Request
		// A line that is no request ends the talk: what follows cannot be trusted, and to the runs it is as if the wrapper had died.
		if decoder.Decode(&q) != nil {
			return
		}
		select {
		case in.requests <- q:
		case <-in.quit:
			return
		}
	}
}

func (in *inbox) stop() {
	close(in.quit)
	_ = in.file.Close()
	<-in.done
}
