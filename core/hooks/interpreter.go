package hooks

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// interpreter says why the program that a script's first line names cannot run
// it. The system's own words for that are that the script is not there.
func (l *launch) interpreter() error {
	words, ended := firstLine(l.path)
	if ended {
		return missing("the first line of %s ends with a carriage return; save it with Unix line ends", l.path)
	}
	if len(words) == 0 {
		return nil
	}
	if _, err := l.find(words[0]); err != nil {
		return l.notInterpreted(words[0])
	}
	// An option or a variable of env is left to env.
	if filepath.Base(words[0]) == "env" && len(words) > 1 && !strings.HasPrefix(words[1], "-") && !strings.Contains(words[1], "=") {
		if _, err := l.find(words[1]); err != nil {
			return l.notInterpreted(words[1])
		}
	}
	return nil
}

func (l *launch) notInterpreted(program string) error {
	return missing("the interpreter %s that the first line of %s names is not there", program, l.path)
}

// firstLine gives the words behind #! of a file that begins so, and whether that
// line ends with a carriage return, which the system takes for part of the last
// word.
func firstLine(path string) (words []string, carriageReturn bool) {
	const enough = 4 << 10 // systems read less
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	begin, err := io.ReadAll(io.LimitReader(f, enough))
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	line, ok := bytes.CutPrefix(line, []byte("#!"))
	if err != nil || !ok {
		return nil, false
	}
	return strings.Fields(string(line)), bytes.HasSuffix(line, []byte("\r"))
}
