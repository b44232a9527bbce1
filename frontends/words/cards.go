package words

// The keys of cards.
const (
	Claimed           Key = "claimed"
	TooLargeToCompare Key = "too_large_to_compare"
	SameTexts         Key = "same_texts"
	UnchangedLines    Key = "unchanged_lines"
	EndBreakNew       Key = "end_break_new"
	EndBreakGone      Key = "end_break_gone"
	EditOf            Key = "edit_of"
	Was               Key = "was"
	AskedFor          Key = "asked_for"
	ChangedBefore     Key = "changed_before_question"
	MoreBehindLines   Key = "more_behind_lines"
	MoreBehindSpaces  Key = "more_behind_spaces"
	NoLongerOpen      Key = "no_longer_open"
)

// cards is read only: what cards say on every screen.
var cards = map[Key]text{
	Claimed:           {"in the model's own words", "模型自己的说法"},
	TooLargeToCompare: {"too large to compare line by line: both texts follow, whole", "内容过大，未逐行比较：两份全文列在下面"},
	SameTexts:         {"both texts are the same", "两份内容相同"},
	UnchangedLines:    {"unchanged lines: %s", "未改动的行：%s"},
	EndBreakNew:       {"now ends with a line break", "现在以换行结尾"},
	EndBreakGone:      {"no longer ends with a line break", "不再以换行结尾"},
	EditOf:            {"edit %s of %s", "第 %s 处编辑，共 %s 处"},
	Was:               {"was", "之前"},
	AskedFor:          {"asked for", "原先请求"},
	MoreBehindLines:   {"empty lines in a row: %s, and more behind them", "连续空行：%s 行，后面还有内容"},
	MoreBehindSpaces:  {"spaces in a row: %s, and more behind them", "连续空格：%s 个，后面还有内容"},
	NoLongerOpen:      {"no longer open", "已不再等待"},
	ChangedBefore:     {"a hook changed %s before it asked", "提问之前，有钩子改动了 %s"},
}
