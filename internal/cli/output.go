package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// printf writes to standard output, which is for answers alone.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.env.Stdout, format, args...) }

// notef writes to standard error.
func (a *app) notef(format string, args ...any) { fmt.Fprintf(a.env.Stderr, format, args...) }

// painted says whether colours are wanted: on a terminal, unless NO_COLOR is
// set (see no-color.org) or the terminal is a dumb one.
func (a *app) painted() bool {
	_, _, is := a.env.Terminal()
	return is && a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb"
}

// show prints a table.
func (a *app) show(t *table) { t.write(a.env.Stdout, a.painted()) }

// document prints a message as an indented JSON document.
func (a *app) document(m proto.Message) error {
	line, err := encode(m)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", "  "); err != nil {
		return fmt.Errorf("write the answer as JSON: %w", err)
	}
	a.printf("%s\n", b.Bytes())
	return nil
}

// line prints a message as one line of JSON.
func (a *app) line(m proto.Message) error {
	line, err := encode(m)
	if err != nil {
		return err
	}
	a.printf("%s\n", line)
	return nil
}

// encode writes a message with the field names of its proto file, and fields
// without a value too, so that a reader always finds them. protojson varies
// its white space on purpose; compacting takes that away.
func encode(m proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write the answer as JSON: %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("write the answer as JSON: %w", err)
	}
	return b.Bytes(), nil
}

// writeProblems prints problems as compilers do, each with its hint.
func writeProblems(w interface{ Write([]byte) (int, error) }, problems []*writv1.Problem) {
	for _, p := range problems {
		place := p.GetFile()
		if p.GetLine() > 0 {
			place = fmt.Sprintf("%s:%d:%d", place, p.GetLine(), p.GetColumn())
		}
		text := p.GetText()
		if p.GetField() != "" {
			text = p.GetField() + ": " + text
		}
		if place != "" {
			text = place + ": " + text
		}
		fmt.Fprintln(w, text)
		if p.GetHint() != "" {
			fmt.Fprintf(w, "  hint: %s\n", p.GetHint())
		}
	}
}
