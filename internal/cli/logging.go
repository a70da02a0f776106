package cli

import (
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logging are the flags of commands that log.
type logging struct {
	level  string
	format string
}

func (l *logging) register(c *cobra.Command) {
	c.Flags().StringVar(&l.level, "log-level", "info", "what is logged to standard error: debug, info, warn or error")
	c.Flags().StringVar(&l.format, "log-format", "console", "how: console, or json, one line each")
}

// logger writes to w, in UTC.
func (l *logging) logger(w io.Writer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(l.level)
	if err != nil || level > zapcore.ErrorLevel {
		return nil, usage("--log-level %q: expected debug, info, warn or error", l.level)
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch l.format {
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	case "console":
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		config.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(config)
	default:
		return nil, usage("--log-format %q: expected console or json", l.format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)), nil
}
