package card

import "testing"

// TestF7OrdinaryTextOfManyLanguagesIsUntouched holds the search for what could
// deceive against what people write.
func TestF7OrdinaryTextOfManyLanguagesIsUntouched(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"English", "Don’t push to “main” — it’s protected (see §4, p. 12–14); ask naïve users first… 5′ 3″ at −3 °C ± 1."},
		{"German", "Größe geändert: „Straße“, ‚Haus‘ und »Maß« in den Übersichtsordner /home/jörg/Büro verschoben."},
		{"French", "L’été dernier, où est passé l’œuf\u00a0? «\u00a0Là-bas\u00a0», répondit-il\u202f! Remarque\u00a0: ça coûte 5 €."},
		{"Spanish", "¿Quieres borrar la carpeta «año»? ¡No! —dijo la niña—. El coste es de 3 €."},
		{"Portuguese", "Não há configuração; a ação “excluir” é irreversível, então confirme já."},
		{"Polish", "Zażółć gęślą jaźń – „usuń plik” w katalogu ~/źródła/łódź."},
		{"Czech", "Příliš žluťoučký kůň úpěl ďábelské ódy."},
		{"Hungarian", "Árvíztűrő tükörfúrógép, őrült űrhajó."},
		{"Turkish", "Iğdır’da kız, ısıyı ölçtü; şimdi dosyayı silme işlemini onaylayın: kapı, fındık, sıra."},
		{"Icelandic", "Það er þörf á að staðfesta; þú átt ökuþór og ær."},
		{"Vietnamese", "Tôi muốn xoá thư mục này, bạn có đồng ý không? Đường dẫn: /nhà/Nguyễn"},
		{"Vietnamese, decomposed", "Tie\u0302\u0301ng Vie\u0323\u0302t"},
		{"Russian", "Удалить каталог build и все его файлы? Это нельзя отменить: «раз и навсегда», а он о том же. IT-отдел, Wi-Fi, роса."},
		{"Russian, in capitals", "ВНИМАНИЕ: ФАЙЛ НЕ НАЙДЕН"},
		{"Ukrainian", "Зʼєднання з базою п’ять разів обірвалося; чи їхати до Києва?"},
		{"Serbian", "Љубазни фењерџија чађавог лица хоће да ми покаже штос."},
		{"Bulgarian", "Ах, чудна българска земьо, полюшвай цъфтящи жита."},
		{"Greek", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία· θέλεις να διαγραφεί; Ναι ή όχι;"},
		{"Greek, its own question mark", "Θέλεις να διαγραφεί\u037e"},
		{"Armenian", "Ջնջե՞լ պանակը։ Սա հնարավոր չէ հետարկել, համաձա՞յն եք։"},
		{"Georgian", "გთხოვთ დაადასტუროთ ფაილის წაშლა, გმადლობთ."},
		{"Hebrew with niqqud", "בְּרֵאשִׁית בָּרָא אֱלֹהִים; האם למחוק את התיקייה build? צה״ל, ג׳ירפה"},
		{"Hebrew with cantillation", "בְּרֵאשִׁ֖ית בָּרָ֣א אֱלֹהִ֑ים"},
		{"Arabic", "هل تريد حذف المجلد build؟ العدد ١٢٣٫٤٥، والنسبة ٥٠٪؛ شكرًا."},
		{"Arabic with vowels", "بِسْمِ ٱللَّهِ ٱلرَّحْمَٰنِ ٱلرَّحِيمِ"},
		{"Persian", "می\u200cخواهم پرونده\u200cهای API\u200cها را پاک کنم؛ ۲۰\u200cساله، آیا مطمئنید؟"},
		{"Urdu", "کیا آپ واقعی یہ فائل حذف کرنا چاہتے ہیں؟ جی ہاں۔"},
		{"Hindi", "क्या आप इस फ़ोल्डर को हटाना चाहते हैं? हाँ, १०० बार। क्\u200dष और क्\u200cष।"},
		{"Marathi", "दऱ्या आणि र्\u200dहस्व, कृपया पुष्टी करा."},
		{"Bengali", "র\u200d্যাব কি ফোল্ডারটি মুছে ফেলতে চায়? ৫০টি ফাইল।"},
		{"Tamil", "இந்தக் கோப்புறையை நீக்க வேண்டுமா? க்ஷ, ஸ்ரீ."},
		{"Telugu", "ఈ ఫోల్డర్\u200cను తొలగించాలా? క్ష"},
		{"Kannada", "ಈ ಫೋಲ್ಡರ್ ಅಳಿಸಬೇಕೇ? ರ\u200d್ಯ"},
		{"Malayalam", "ഈ ഫോൾഡർ നീക്കണോ? അവന്\u200d വന്നു."},
		{"Sinhala", "ශ්\u200dරී ලංකාව, මෙම ගොනුව මකන්නද?"},
		{"Thai", "คุณต้องการลบโฟลเดอร์ build นี้หรือไม่? ไม่ต้องห่วง น้ำ ๑๒๓ ที่นี่"},
		{"Lao", "ທ່ານຕ້ອງການລຶບໂຟນເດີນີ້ບໍ່? ນໍ້າ"},
		{"Khmer", "តើអ្នកចង់លុបថតនេះទេ? ស្ត្រី ក្រុម"},
		{"Burmese", "ဤဖိုင်တွဲကို ဖျက်လိုပါသလား။ မြို့ ကျွေးမွှေး"},
		{"Tibetan", "བཀྲ་ཤིས་བདེ་ལེགས། བསྒྲུབས་སོ།"},
		{"Amharic", "ይህን አቃፊ መሰረዝ ይፈልጋሉ? አመሰግናለሁ።"},
		{"Mongolian", "ᠮᠣᠩᠭᠣᠯ\u202fᠤᠨ ᠪᠠ\u180eᠠ ᠰᠢᠨ\u180bᠡ"},
		{"Uzbek", "Oʻzbekiston maʼlumotlari: gʻalaba"},
		{"Inuktitut", "ᐃᓄᒃᑎᑐᑦ ᑎᑎᕋᐅᓯᖅ"},
		{"Cherokee", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ"},
		{"Chinese", "请先运行 git push，然后删除“旧”目录（不可恢复）：好吗？《说明》；例如 A/B、100％、Ｔ恤。"},
		{"Chinese, spaced and wide", "　　二〇二六年，ＡＢＣ公司；和／或；时间：10：30？"},
		{"Chinese, traditional", "「請確認」：這個資料夾將被刪除，無法復原！"},
		{"Chinese, ending with a name", "我们使用 git。请看 README、LICENSE。"},
		{"Japanese", "フォルダー「ｂｕｉｌｄ用」を削除しますか？　はい／いいえ　（Ｔシャツ、１００％、～５００円）ノート、コーヒー、一つ。"},
		{"Japanese, half-width", "ﾃｽﾄ中です。ｶﾞｷﾞｸﾞ"},
		{"Korean", "이 폴더를 삭제하시겠습니까? K팝, 3번째 파일은 “중요”합니다。"},
		{"Emoji", "👩\u200d👩\u200d👧\u200d👦 👍🏽 ❤️\u200d🔥 ❤︎ 1️⃣ #️⃣ 2⃣ 🇨🇳🇺🇦 🏳️\u200d🌈 🧑🏻\u200d🤝\u200d🧑🏿 🐻\u200d❄️ ©️ ™ ℹ️ 🫩"},
		{"Flags with tags", "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F 🏴\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F 🏴\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F"},
		{"Mathematics", "∀x ∈ ℝ: Δx ≤ λ · µ, f′(x) = 1⁄2, α + β ≠ γ, ∑ 𝑥² → ∞, αx, Ω, A ∖ B, 3 × 4, x ∣ y"},
		{"Quantities", "ρ = 1.2 kg/m³ and ν = 5 µm, σ ≈ 3"},
		{"Phonetics", "girl /ˈɡɜːl/, woman /ˈwʊmən/"},
		{"A table", "┌──┬──┐\n│ a │ b │\n├──┼──┤\n└──┴──┘ ├── src\n│   └── main.go"},
		{"Code", "if (a !== b) { return `x\\nпривет`; } // ← see “notes”…"},
		{"Numbered", "① one ② two Ⅷ ⅳ № 5 ½ ™ 10² H₂O"},
	} {
		if got := Escape(c.text); got != c.text {
			t.Errorf("%s:\n%q became\n%q", c.name, c.text, got)
		}
		if got := escape(c.text, oneLine); c.name != "A table" && got != c.text {
			t.Errorf("%s, in one line: %q", c.name, got)
		}
	}
}
