package etcd

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quiet keeps warnings and worse of a logger, so that etcd's chatter at info
// level does not drown writ's own lines. While stopping says so, errors are
// dropped too: a server that is stopped reports each closed listener as one.
func quiet(logger *zap.Logger, stopping func() bool) *zap.Logger {
	lowest := zapcore.LevelOf(logger.Core())
	if lowest == zapcore.InvalidLevel {
		return logger
	}
	lowest = max(lowest, zap.WarnLevel)
	return logger.WithOptions(
		zap.WrapCore(func(core zapcore.Core) zapcore.Core { return settledCore{core} }),
		zap.IncreaseLevel(zap.LevelEnablerFunc(func(level zapcore.Level) bool {
			return level >= lowest && (level > zap.ErrorLevel || !stopping())
		})),
	)
}

// settledCore drops the warnings about what writ decided on purpose.
type settledCore struct {
	zapcore.Core
}

// With keeps the filter over added fields.
func (c settledCore) With(fields []zapcore.Field) zapcore.Core {
	return settledCore{c.Core.With(fields)}
}

// Check leaves a settled warning unwritten.
func (c settledCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	switch entry.Message {
	case "Running http and grpc server on single port. This is not recommended for production.",
		// One port is enough: watches have a connection of their own.
		"simple token is not cryptographically signed":
		// An embedded member has no users; TLS decides who connects.
		return checked
	}
	return c.Core.Check(entry, checked)
}
