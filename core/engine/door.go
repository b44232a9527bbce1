package engine

import "github.com/fermata-hitl/fermata/events"

// Frontend is a connection that may answer. Principal is who stands behind it
// as the server knows it; a payload never says it.
type Frontend struct {
	ID        events.ID
	Principal string
}

// Place is a session in its project.
type Place struct {
	Project events.Token
	Session events.Token
}
