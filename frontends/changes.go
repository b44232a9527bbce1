package frontends

import "context"

// Changes calls changed whenever the [Inbox] may have changed, once at the start, and
// returns when ctx or the client ends. A call may stand for many changes.
func (c *Client) Changes(ctx context.Context, changed func()) {
	for _, err := range c.Updates(ctx) {
		if err != nil {
			return
		}
		changed()
	}
}
