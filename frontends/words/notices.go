package words

// notices is read only: what is said outside a screen: notifications and status lines.
var notices = map[Key]text{}
