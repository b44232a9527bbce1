package words

// browsing is read only: what the list, the history, the hooks pane and help say.
var browsing = map[Key]text{}
