package words

// cards is read only: what cards say on every screen.
var cards = map[Key]text{}
