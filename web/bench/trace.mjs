// What the main thread of a page did after each mark, read from Chromium's own trace.

/** What an event counts as. Events in none of these (posting, waking up) are the rest. */
const KINDS = {
  script:
    /^(FunctionCall|EvaluateScript|FireAnimationFrame|TimerFire|EventDispatch|RunMicrotasks|v8\.|V8\.|MinorGC|MajorGC|BlinkGC)/,
  style: /^(UpdateLayoutTree|Document::updateStyle)/,
  layout: /^(Layout|HitTest)$/,
  paint: /^(PrePaint|Paint|Layerize|Commit|UpdateLayer|UpdateLayerTree|CompositeLayers|IntersectionObserver)/,
};
export const kinds = [...Object.keys(KINDS), 'rest'];

const CATEGORIES = ['toplevel', 'devtools.timeline', 'blink.user_timing', '__metadata'];
const TASK = 'ThreadControllerImpl::RunTask';

/** Traces while `act` runs. Returns the events. */
export async function traced(devtools, act) {
  const events = [];
  const take = ({ value }) => {
    for (const event of value) events.push(event);
  };
  devtools.on('Tracing.dataCollected', take);
  await devtools.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { recordMode: 'recordAsMuchAsPossible', includedCategories: CATEGORIES },
  });
  await act();
  const complete = new Promise((done) => devtools.once('Tracing.tracingComplete', done));
  await devtools.send('Tracing.end');
  await complete;
  devtools.off('Tracing.dataCollected', take);
  return events;
}

/**
 * For each mark the milliseconds of the processor that the main thread needed in `windowMs` from the task that set the
 * mark: `total`, of each kind, and of the `longest` task. And `otherwise`: what it needed in all the time between the windows, by the mark.
 */
export function afterMarks(events, mark, windowMs) {
  const marks = events.filter(({ name, cat }) => name === mark && cat === 'blink.user_timing');
  if (marks.length === 0) throw new Error(`nothing is marked ${mark}`);
  const { pid, tid } = marks[0];
  const own = events.filter((event) => event.pid === pid && event.tid === tid && event.ph === 'X');
  if (!own.some(({ tdur }) => tdur > 0)) throw new Error('the trace has no time of the thread');
  // Who begins first and lasts longest is outside.
  own.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const tasks = [];
  let open = [];
  for (const event of own) {
    open = open.filter(({ end }) => event.ts < end);
    const parent = open.at(-1);
    // Tasks within tasks (a nested loop) are the outer one's.
    if (!parent && event.name !== TASK) continue;
    const span = {
      event,
      end: event.ts + event.dur,
      own: event.tdur ?? 0,
      kind: kindOf(event.name, parent),
      spans: [],
    };
    if (parent) {
      parent.own -= span.own;
      parent.task.spans.push(span);
      span.task = parent.task;
    } else {
      span.task = span;
      span.spans.push(span);
      tasks.push(span);
    }
    open.push(span);
  }
  const times = marks.map(({ ts }) => ts).sort((a, b) => a - b);
  const found = times.map(() => Object.fromEntries(['total', 'longest', ...kinds].map((kind) => [kind, 0])));
  let between = 0;
  for (const task of tasks) {
    const index = times.findIndex((ts) => task.end >= ts && task.event.ts < ts + windowMs * 1000);
    const total = (task.event.tdur ?? 0) / 1000;
    if (index < 0) {
      if (task.event.ts > times[0] && task.end < times.at(-1)) between += total;
      continue;
    }
    found[index].total += total;
    found[index].longest = Math.max(found[index].longest, total);
    for (const span of task.spans) found[index][span.kind] += span.own / 1000;
  }
  return { updates: found, otherwise: between / Math.max(1, times.length - 1) };
}

/** What a script makes the page do within itself (a forced layout) is not script. */
function kindOf(name, parent) {
  for (const [kind, pattern] of Object.entries(KINDS)) if (pattern.test(name)) return kind;
  return parent?.kind ?? 'rest';
}
