package keeper_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/keeper"
)

// framed is a body with a length in front, which need not be its own.
func framed(length uint32, body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, length), body...)
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) keeper.Frame {
			f := keeper.Frame{
				Op: keeper.Op(rapid.SampledFrom([]string{"start", "kill", "extend", "ping"}).Draw(t, "op")), Token: rapid.String().Draw(t, "token"),
				Grace: time.Duration(rapid.Int64Min(0).Draw(t, "grace")), Seq: rapid.Uint64().Draw(t, "seq"),
			}
			if rapid.Bool().Draw(t, "start") {
				f.Start = &keeper.Start{Argv: rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "argv"), Mark: rapid.Uint64().Draw(t, "mark")}
			}
			return f
		}), 1, 8).Draw(t, "frames")
		var wire bytes.Buffer
		for _, f := range frames {
			b, err := keeper.EncodeFrame(f)
			require.NoError(t, err)
			wire.Write(b)
		}
		r := iotest.OneByteReader(&wire)
		for _, want := range frames {
			got, err := keeper.ReadFrame(r)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		_, err := keeper.ReadFrame(r)
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestWhatIsNoFrameIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wire []byte
		err  error
	}{
		"nothing":                 {nil, io.EOF},
		"half a length":           {[]byte{0, 0}, io.ErrUnexpectedEOF},
		"no body":                 {framed(5, ""), io.ErrUnexpectedEOF},
		"half a body":             {framed(50, `{"op":"ping"}`), io.ErrUnexpectedEOF},
		"length of zero":          {framed(0, ""), keeper.ErrFrame},
		"length above the bound":  {framed(keeper.MaxFrame+1, "{}"), keeper.ErrFrame},
		"text where a length is":  {[]byte("GET / HTTP/1.1\r\n\r\n"), keeper.ErrFrame},
		"no JSON":                 {framed(4, "ping"), keeper.ErrFrame},
		"field that nobody knows": {framed(18, `{"op":"ping","x":1}`), keeper.ErrFrame},
		"another type":            {framed(8, `{"op":1}`), keeper.ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := keeper.ReadFrame(bytes.NewReader(c.wire))
			require.ErrorIs(t, err, c.err)
		})
	}
}

func TestFrameAboveTheBoundIsNotWritten(t *testing.T) {
	t.Parallel()
	_, err := keeper.EncodeFrame(keeper.Frame{Op: keeper.OpStart, Start: &keeper.Start{Argv: []string{strings.Repeat("x", keeper.MaxFrame)}}})
	require.ErrorContains(t, err, "at most 8388608 are allowed")
}

func TestMarksNameTheirStateDirectory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := keeper.StateID(rapid.Uint32Range(1, 1<<31-1).Draw(t, "id"))
		parsed, err := keeper.ParseStateID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, parsed)
		other := keeper.StateID(rapid.Uint32().Draw(t, "other"))
		require.Equal(t, other == id, other.Owns(id.Mark(rapid.Uint32().Draw(t, "serial"))))
	})
	for _, bad := range []string{"", "0", "00000000", "80000000", "xyz", "123456789", "-1"} {
		_, err := keeper.ParseStateID(bad)
		require.Error(t, err, bad)
	}
}
