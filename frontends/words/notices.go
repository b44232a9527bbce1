package words

// The keys of what is said outside a screen.
const (
	NoticeTitle   Key = "notice_title"
	NoticeBody    Key = "notice_body"
	FlagShort     Key = "cli_flag_short"
	StatusWaiting Key = "cli_status_waiting"
)

// notices is read only: what is said outside a screen: notifications and status lines.
var notices = map[Key]text{
	NoticeTitle: {"%s · %s waits for you", "%s · %s 在等你回答"},
	NoticeBody:  {"Open Fermata to read it and answer.", "打开 Fermata 查看并回答。"},

	"setting.notify.command": {
		"command for /bin/sh when a question waits 3 s, and when it has ended; it hears of it in FERMATA_EVENT and the like",
		"问题等待 3 秒时、以及结束时由 /bin/sh 运行的命令；详情在 FERMATA_EVENT 等环境变量里",
	},
	"setting.notify.popup": {
		"open a question over the agent's own pane in tmux or zellij: auto or off (default)",
		"是否在代理所在的 tmux 或 zellij 窗格上弹出问题：auto 或 off（默认）",
	},
	"setting.notify.desktop": {
		"notification of the desktop when a question waits 3 s: auto (default) or off",
		"问题等待 3 秒时是否发桌面通知：auto（默认）或 off",
	},

	FlagShort:     {"one short line for a status bar, empty when nothing waits", "供状态栏使用的一行短文，没有待答问题时为空"},
	StatusWaiting: {"%d waiting %s", "%d 个待答 %s"},
}
