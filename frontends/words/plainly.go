package words

// The keys of the frontend of lines.
const (
	PlainQuestion     Key = "plain_question"
	PlainCounted      Key = "plain_counted"
	PlainChoice       Key = "plain_choice"
	PlainHelp         Key = "plain_help"
	PlainUnknown      Key = "plain_unknown"
	PlainWhich        Key = "plain_which"
	PlainNoWords      Key = "plain_no_words"
	PlainNotText      Key = "plain_not_text"
	PlainTooLong      Key = "plain_too_long"
	PlainLost         Key = "plain_lost"
	PlainNoQuestion   Key = "plain_no_question"
	PlainNotShown     Key = "plain_not_shown"
	PlainTooSoon      Key = "plain_too_soon"
	PromptTooSoon     Key = "prompt_too_soon"
	PromptNoWords     Key = "prompt_no_words"
	PlainNotLoaded    Key = "plain_not_loaded"
	PlainNotConfirmed Key = "plain_not_confirmed"
	PlainAside        Key = "plain_aside"
	PlainAttached     Key = "plain_attached"
	PlainInputEnded   Key = "plain_input_ended"
	PlainNoHistory    Key = "plain_no_history"
	FlagSession       Key = "flag_session"
	FlagProject       Key = "flag_project"
	FlagPlain         Key = "flag_plain"
	FlagQuestion      Key = "flag_question"
	ScopeNone         Key = "scope_none"
	ScopeSeveral      Key = "scope_several"
)

// plainly is read only: what the frontend of lines says.
var plainly = map[Key]text{
	PlainQuestion: {"question %d", "问题 %d"},
	PlainCounted:  {"rows: %s · bytes: %s", "行数：%s · 字节：%s"},
	PlainChoice: {
		"c %[1]d continue · x %[1]d cancel · w %[1]d WORDS cancel with words\nl %[1]d later · ? %[1]d why   (rows above: %[2]d)",
		"c %[1]d 继续 · x %[1]d 取消 · w %[1]d 留言 取消并留言\nl %[1]d 稍后 · ? %[1]d 原因   （以上共 %[2]d 行）",
	},
	PlainHelp: {
		"c 3 continue question 3 · x 3 cancel it · w 3 WORDS cancel it, with words to the model\n" +
			"l 3 later · ? 3 all that is known about it · 3 show it again\n" +
			"list what waits · h what happened of late · q quit",
		"c 3 继续问题 3 · x 3 取消 · w 3 留言 取消并给模型留言\n" +
			"l 3 稍后 · ? 3 有关它的一切 · 3 再次显示\n" +
			"list 待答的问题 · h 近来的操作 · q 退出",
	},
	PlainUnknown:      {"Not understood; nothing was answered. help tells what can be typed.", "无法理解；未作任何回答。输入 help 查看可用的命令。"},
	PlainWhich:        {"Which one? Put its number behind it, as in c %d. Nothing was answered.", "哪一个？请在后面加上编号，例如 c %d。未作任何回答。"},
	PlainNoWords:      {"The words belong on the same line, as in w %d use the test data. Nothing was answered.", "留言请写在同一行，例如 w %d 请用测试数据。未作任何回答。"},
	PlainNotText:      {"The words hold a character that is no text. Nothing was answered.", "留言中含有不是文字的字符。未作任何回答。"},
	PlainTooLong:      {"The line is longer than %s bytes. Nothing was answered.", "这一行超过 %s 字节。未作任何回答。"},
	PlainLost:         {"Lines came faster than they could be taken; some were dropped, this one too. Nothing was answered.", "输入过快；丢弃了若干行，也包括这一行。未作任何回答。"},
	PlainNoQuestion:   {"No question %d is open. Nothing was answered.", "没有待答的问题 %d。未作任何回答。"},
	PlainNotShown:     {"Question %d has not been shown yet. Nothing was answered. Here it comes.", "问题 %d 还没有显示过。未作任何回答。现在显示。"},
	PlainTooSoon:      {"Question %d had only just appeared. Nothing was answered. Read it, then type that again.", "问题 %d 刚刚出现。未作任何回答。请读过之后再输入一次。"},
	PromptTooSoon:     {"The question had only just appeared. Nothing was answered. Read it, then type that again.", "问题刚刚出现。未作任何回答。请读过之后再输入一次。"},
	PromptNoWords:     {"There were no words. Nothing was answered.", "没有留言。未作任何回答。"},
	PlainNotLoaded:    {"could not be fetched: %s. %d tries again.", "读取失败：%s。输入 %d 重试。"},
	PlainNotConfirmed: {"no core confirmed the last answer; whether it counts is not known", "没有核心确认最后的回答；不知道它是否有效"},
	PlainAside:        {"%d put aside; it still waits.", "已搁置 %d；它仍在等待。"},
	PlainAttached:     {"connected to the core again", "已重新连接核心"},
	PlainInputEnded:   {"The input has ended. Nothing more can be answered here.", "输入已结束。不能再在此回答。"},
	FlagSession:       {"only this session: its token, the agent's own id of it, or the beginning of one of them", "只显示此会话：会话标识、代理自己的会话标识，或其开头"},
	FlagProject:       {"only this project: a directory in it, or its name", "只显示此项目：项目内的目录，或项目名"},
	FlagPlain:         {"lines of text instead of a screen: no colour, nothing moves; help there tells what to type", "用文字行代替界面：没有颜色，不移动光标；输入 help 查看可用的命令"},
	FlagQuestion:      {"only the question with this id; ends with it", "只显示此标识的问题；问题结束后退出"},
	ScopeNone:         {"nothing open is called %q; fermata sessions lists what is", "没有名为 %q 的会话或项目；fermata sessions 会列出当前的"},
	ScopeSeveral:      {"%q may be one of several: %s; give one of them whole", "%q 可能是其中之一：%s；请给出完整的名称"},
	PlainNoHistory:    {"Nothing has happened yet.", "还没有任何操作。"},
}
