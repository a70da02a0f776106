package keyspace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/writ-sched/writ/internal/record"
)

// Parse reads a key string; it is the inverse of Key. The error names a key
// that is not of this space, or that Key would not have written.
func (s Space) Parse(key string) (record.Key, error) {
	path, ours := strings.CutPrefix(key, s.prefix)
	if !ours || s.prefix == "" {
		return record.Key{}, fmt.Errorf("key %q does not begin with %q", key, s.prefix)
	}
	k, err := read(path)
	if err != nil {
		return record.Key{}, fmt.Errorf("key %q: %w", key, err)
	}
	if again := s.Key(k); again != key {
		return record.Key{}, fmt.Errorf("key %q: expected it written as %q", key, again)
	}
	return k, nil
}

// read splits a path into the folder of a family and its segments.
func read(path string) (record.Key, error) {
	for _, f := range record.Families() {
		if f == record.FamilyChunk || f == record.FamilyPage {
			continue // told from their heads by the number of segments
		}
		rest, ok := strings.CutPrefix(path, folder(f))
		if !ok {
			continue
		}
		if f == record.FamilyMeta || f == record.FamilyCompact {
			if rest != "" {
				continue
			}
			return record.Key{Family: f}, nil
		}
		return readParts(f, strings.Split(rest, "/"))
	}
	return record.Key{}, errors.New("no record stands there")
}

// segments reads the parts of a key from left to right and keeps the first
// error.
type segments struct {
	left []string
	err  error
}

func readParts(f record.Family, parts []string) (record.Key, error) {
	p := &segments{left: parts}
	k := record.Key{Family: f}
	switch f {
	case record.FamilyElection:
		k.N = p.hex()
	case record.FamilyRun, record.FamilyInput:
		k.Run = record.RunID(p.text())
	case record.FamilyEnded:
		k.Run = record.RunID(p.text())
		if len(p.left) > 0 {
			k.Family, k.Part = record.FamilyPage, int(p.number())
		}
	case record.FamilyClear:
		k.Run, k.N = record.RunID(p.text()), p.number()
	case record.FamilyAttempt, record.FamilyUnproven, record.FamilyResult:
		k.Run = record.RunID(p.text())
		k.Task, k.Instance = p.task()
		k.N = p.number()
	case record.FamilyWorker, record.FamilySession:
		k.Name, k.Session = p.text(), record.SessionID(p.text())
	case record.FamilyHolder:
		k.Name, k.N = p.text(), p.number()
	case record.FamilyRevision:
		k.Name, k.N = p.text(), p.number()
		if len(p.left) > 0 {
			k.Family, k.Part = record.FamilyChunk, int(p.number())
		}
	case record.FamilySignal:
		if len(p.left) > 1 {
			k.Run = record.RunID(p.text())
		}
		k.Name = p.text()
	case record.FamilyIndex:
		k.Hour, k.Run = maxHour-p.number(), record.RunID(p.text())
	default:
		k.Name = p.text()
	}
	return k, p.end()
}

// next takes the next segment.
func (p *segments) next() string {
	if len(p.left) == 0 || p.left[0] == "" {
		p.fail(errors.New("a part is missing"))
		return ""
	}
	part := p.left[0]
	p.left = p.left[1:]
	return part
}

func (p *segments) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// end reports the first error, or segments that nothing has taken.
func (p *segments) end() error {
	if p.err == nil && len(p.left) > 0 {
		p.err = fmt.Errorf("%d parts too many", len(p.left))
	}
	return p.err
}

func (p *segments) number() int64 {
	n, err := strconv.ParseInt(p.next(), 10, 64)
	if err != nil {
		p.fail(fmt.Errorf("expected a number: %w", err))
	}
	return n
}

func (p *segments) hex() int64 {
	n, err := strconv.ParseInt(p.next(), 16, 64)
	if err != nil {
		p.fail(fmt.Errorf("expected a lease in hexadecimal: %w", err))
	}
	return n
}

func (p *segments) text() string { return p.plain(p.next()) }

func (p *segments) task() (record.TaskID, record.Instance) {
	t, i, _ := strings.Cut(p.next(), ".")
	return record.TaskID(p.plain(t)), record.Instance(p.plain(i))
}

// plain undoes escape.
func (p *segments) plain(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if len(s) < i+3 {
			p.fail(fmt.Errorf("%q: expected two hexadecimal digits behind %%", s))
			return ""
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			p.fail(fmt.Errorf("%q: expected two hexadecimal digits behind %%", s))
			return ""
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String()
}
