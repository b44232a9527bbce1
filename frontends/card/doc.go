// Package card is what every screen shows of a question, without saying how:
// the arguments as named values, what changed since the last yes, the reason,
// and the marks of characters that could deceive.
//
// All text that leaves this package is safe to write to a terminal or a page
// as text: [Escape] has replaced what could move, hide or imitate. Values come
// from the bytes that will run, whole; nothing is shortened here except what
// stands unchanged around a change, and that with its count. What the model says of
// its own call is marked as its words and stands behind the call.
package card
