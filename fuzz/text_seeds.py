"""Small whole files of every text format that is read; invented here, like all our examples."""

import json

SAID = ((0.5, 2.0, "boil the water"), (2.0, 4.5, "add the leaves"), (5.0, 8.0, "pour the tea"))
STEPS = """\
# Make tea
boil the water
    // said in 2 of 2 videos, also: heat it
    // tea 0:01: so boil the water
- add the leaves
2. pour the tea
# Make soup
[ ] chop it
boil the water
"""


def as_bytes(content):
    return content.encode() if isinstance(content, str) else json.dumps(content).encode()


def _clock(seconds, mark="."):
    return f"00:00:{int(seconds):02d}{mark}{round(seconds % 1 * 1000):03d}"


def srt():
    cues = [
        f"{number}\n{_clock(start, ',')} --> {_clock(end, ',')}\n<i>{text}</i>\n"
        for number, (start, end, text) in enumerate(SAID, 1)
    ]
    return "\n".join(cues)


def vtt():
    cues = [
        f"{_clock(start)} --> {_clock(end)} align:start\n{text}\n" for start, end, text in SAID
    ]
    rolling = "00:00:09.000 --> 00:00:11.000\nboil\nthe<00:00:09.500><c> water</c> &amp; [Music]\n"
    return "\n".join(["WEBVTT\nKind: captions\n", "NOTE by hand\n", *cues, rolling])


def sbv():
    return "\n".join(f"{_clock(s)[1:]},{_clock(e)[1:]}\n{text}\n" for s, e, text in SAID)


def ass():
    head = "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\n"
    style = "Style: Default,Arial,20\n\n[Events]\n"
    fields = "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    lines = [
        f"Dialogue: 0,0:00:{s:05.2f},0:00:{e:05.2f},Default,,0,0,0,,{{\\an8}}{text}\\Nnow"
        for s, e, text in SAID
    ]
    return head + style + fields + "\n".join(lines) + "\n"


def ttml():
    lines = [f'<p begin="{s}s" end="{e}s">{text}<br/>now</p>' for s, e, text in SAID]
    return (
        '<?xml version="1.0"?><tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en"><body><div>'
        + "".join(lines)
        + "</div></body></tt>"
    )


def microdvd():
    lines = [f"{{{int(25 * s)}}}{{{int(25 * e)}}}{{y:i}}{text}|now" for s, e, text in SAID]
    return "{1}{1}25\n" + "\n".join(lines) + "\n"


def pasted():
    above = "\n".join(f"0:{int(start):02d}\n{text}" for start, _, text in SAID)
    before = "\n".join(f"[0:{int(start) + 20}] {text}" for start, _, text in SAID)
    return f"Transcript\n{above}\n1:05\n1 minute, 5 seconds\nlet it cool\n{before}\n"


def tsv():
    rows = [f"{int(1000 * s)}\t{int(1000 * e)}\t{text}" for s, e, text in SAID]
    return "\n".join(["start\tend\ttext", *rows]) + "\n"


def json3():
    events = [{"tStartMs": 0, "id": 1, "wpWinPosId": 1}] + [
        {"tStartMs": int(1000 * s), "dDurationMs": int(1000 * (e - s)), "segs": [{"utf8": text}]}
        for s, e, text in SAID
    ]
    return {"wireMagic": "pb3", "events": events}


def lists():
    starts, ends, texts = zip(*SAID, strict=True)
    return {"start": starts, "end": ends, "text": texts}


def whisper():
    segments = [
        {"id": number, "start": s, "end": e, "text": text, "tokens": [1, 2], "no_speech_prob": 0.1}
        for number, (s, e, text) in enumerate(SAID)
    ]
    return {"text": "all", "segments": segments, "language": "en"}


def whisperx():
    segments = [
        {"words": [{"word": text, "start": s, "end": e, "score": 0.9}, {"word": "now"}]}
        for s, e, text in SAID
    ]
    return {"segments": segments, "word_segments": []}


def faster_whisper():
    return [[number, 0, s, e, text, [1, 2], 0.0] for number, (s, e, text) in enumerate(SAID)]


def with_durations():
    return [{"text": text, "start": s, "duration": e - s} for s, e, text in SAID]


def transcripts(**contents):
    """One input for each transcript, by suffix; a later one of a suffix has a longer name."""
    return [
        {f"talk.{name.partition('_')[0]}": as_bytes(content)} for name, content in contents.items()
    ]


def timed_text():
    return transcripts(srt=srt(), vtt=vtt(), sbv=sbv(), txt=pasted(), tsv=tsv(), srt_wide=vtt())


def styled_text():
    return transcripts(ass=ass(), ssa=ass(), ttml=ttml(), sub=microdvd())


def json_text():
    more = {"json_x": whisperx(), "json_fast": faster_whisper(), "json_length": with_durations()}
    return transcripts(json3=json3(), json=whisper(), json_lists=lists(), **more)


def step_lists():
    plain = "boil the water\nadd the leaves\n\nMake soup:\n  * chop it\n  * stir\n"
    told = (
        '# tea\nboil the water\n  // 3 of 4 videos, first around 0:20\n  // "now boil it"\npour\n'
    )
    return [{"steps.txt": text.encode()} for text in (STEPS, plain, told)]


TRUTH = "video,start,end,keystep\ntea,0.5,2,boil the water\ntea,2,4.5,add the leaves\n"


def folders():
    """A folder of one's own: two videos, their keysteps and their truth."""
    common = {"steps.txt": STEPS.encode(), "truth.csv": TRUTH.encode()}
    return [
        {"tea.srt": srt().encode(), "more/soup.en.vtt": vtt().encode(), **common},
        {"tea.json": as_bytes(lists()), "a.ass": ass().encode(), **common},
        {"tea.txt": pasted().encode(), **common},
    ]


def manifests():
    rows = [
        {"id": "tea", "transcript": "tea.srt", "task": "Make tea", "truth": "truth.csv"},
        {"transcript": "soup.vtt"},
    ]
    files = {"tea.srt": srt().encode(), "soup.vtt": vtt().encode(), "steps.txt": STEPS.encode()}
    files["truth.csv"] = TRUTH.encode()
    table = "id,transcript,task,truth\ntea,tea.srt,Make tea,truth.csv\n,soup.vtt,,\n"
    lines = "\n".join(map(json.dumps, rows)) + "\n"
    return [{"videos.jsonl": lines.encode(), **files}, {"videos.csv": table.encode(), **files}]


def crosstask():
    tasks = "111\nMake Tea\nhttp://example.org/tea\n2\nboil water,pour water\n\n"
    tasks += "222\nMake Soup\nhttp://example.org/soup\n3\nchop,boil water,stir\n\n"
    return [
        {
            "tasks_primary.txt": tasks.encode(),
            "tasks_related.txt": b"333\nMake Stock\nu\n3\nchop,simmer,chop\n",
            "videos.csv": b"222,soup,u\n111,_a_b,u\n333,stock,u\n",
            "videos_val.csv": b"222,soup,u\n",
            "annotations/111__a_b.csv": b"1,0.5,2.0\n2,2.0,4.25\n",
            "annotations/222_soup.csv": b"3,1,2\n2,5,6\n",
            "narration/_a_b.json": as_bytes(lists()),
            "crosstask_processed/soup.json": as_bytes(lists()),
        }
    ]


def coin():
    def entry(task, subset, *steps):
        annotation = [{"id": str(i), "label": name, "segment": list(t)} for i, name, *t in steps]
        return {"class": task, "subset": subset, "duration": 6.5, "annotation": annotation}

    database = {
        "soup": entry("MakeSoup", "training", (2, "chop", 0, 1), (3, "boil", 2, 4.0)),
        "tea": entry("MakeTea", "testing", (0, "boil", 0, 2.0), (1, "pour", 2, 3)),
    }
    return [
        {
            "COIN.json": as_bytes({"database": database}),
            "narration/tea.vtt": vtt().encode(),
            "captions/soup.srt": srt().encode(),
        }
    ]


def captions():
    return {"tea": lists(), "soup": lists(), 'a"b': {"text": [], "start": [], "end": []}}


def howto100m():
    videos = "video_id,category_1,category_2,rank,task_id\n"
    return [
        {
            "raw_caption.json": as_bytes(captions()),
            "HowTo100M_v1.csv": f'{videos}tea,Food,"Tea, hot",1,7\nsoup,Food,Soup,2,8\n'.encode(),
            "task_ids.csv": b"7\tMake Tea\n8\tMake Soup\n",
            "wikihow.jsonl": articles()[0]["articles.jsonl"],
        },
        {"caption.json": json.dumps(captions(), indent=1).encode()},
    ]


def articles():
    steps = ["Boil the water.", "Add the leaves"]
    lines = [
        {"title": "How to Make Tea1", "steps": steps},
        {"title": "How to Make Tea2", "methods": [{"steps": [{"headline": "Chop it"}]}, steps]},
        {"title": "Make Soup", "headline": "Chop it.\nStir it, slowly."},
    ]
    whole = (
        '"headline","title","text"\n"\nBoil it.\nPour it.","How to Make Tea1","Prose, ""x""."\n'
    )
    parts = "overview,headline,text,sectionLabel,title\n,Boil it,Prose,Steps,Make Tea\n"
    parts += ",Pour it,Prose,Steps,Make Tea\n,Chop it,Prose,Steps,Make Soup\n"
    return [
        {"articles.jsonl": "\n".join(map(json.dumps, lines)).encode()},
        {"wikihowAll.csv": whole.encode()},
        {"wikihowSep.csv": parts.encode()},
        {"tea.json": as_bytes(lines[0]), "below/soup.json": as_bytes(lines[1])},
    ]
