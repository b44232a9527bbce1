package words

// plainly is read only: what the frontend of lines says.
var plainly = map[Key]text{}
