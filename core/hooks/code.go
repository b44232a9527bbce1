package hooks

import (
	"errors"

	"github.com/fermata-hitl/fermata/events"
)

// CodeOf is the code of an error that says why rules cannot be used: that of a
// [*ConfigError], a [*NotTrusted], or whatever else has a Code; "" when it has
// none.
func CodeOf(err error) events.Code {
	if coded, ok := errors.AsType[interface {
		error
		Code() events.Code
	}](err); ok {
		return coded.Code()
	}
	return ""
}
