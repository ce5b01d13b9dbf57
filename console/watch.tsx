/** What happens from now on: the rows of a statement, and each change of them as it is committed. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { data, terms } from './api.ts';
import { cellText, Head, Problem } from './parts.tsx';
import { amend, place } from './place.ts';

interface Event {
  readonly id: number;
  readonly name: string;
  readonly text: string;
}

const eventsMax = 1_000;

/** EventSource sends no headers, so the stream is read by fetch. */
async function follow(
  sql: string,
  purpose: string,
  signal: AbortSignal,
  onEvent: (name: string, text: string) => void,
): Promise<void> {
  const response = await data(`/watch/stream?${new URLSearchParams({ sql, purpose })}`, {
    signal,
    headers: { accept: 'text/event-stream' },
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      const field = (name: string): string =>
        block
          .split('\n')
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).trim())
          .join('\n');
      if (field('data') !== '') onEvent(field('event') || 'message', field('data'));
    }
  }
}

export function Watch() {
  const { sql = 'SELECT * FROM Cover' } = place.value.params;
  const [isOn, setOn] = useState(false);
  const [isPaused, setPaused] = useState(false);
  const [events, setEvents] = useState<readonly Event[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [waiting, setWaiting] = useState(0);
  const held = useRef<Event[]>([]);
  const paused = useRef(false);
  const counter = useRef(0);
  useEffect(() => {
    if (!isOn) return undefined;
    const abort = new AbortController();
    setError(null);
    const take = (name: string, text: string): void => {
      const event = { id: counter.current++, name, text };
      if (paused.current) {
        held.current.push(event);
        held.current.splice(0, held.current.length - eventsMax);
        setWaiting(held.current.length);
      } else setEvents((before) => [event, ...before].slice(0, eventsMax));
    };
    follow(sql, terms.value.purpose || 'analytics', abort.signal, take)
      .catch((thrown: unknown) => !abort.signal.aborted && setError(thrown))
      .finally(() => !abort.signal.aborted && setOn(false));
    return () => abort.abort();
  }, [isOn]);
  const pause = (): void => {
    paused.current = !isPaused;
    setPaused(!isPaused);
    if (!isPaused) return;
    const come = held.current.toReversed();
    held.current = [];
    setWaiting(0);
    setEvents((before) => [...come, ...before].slice(0, eventsMax));
  };
  return (
    <>
      <Head title="Watch">Every delivery is decided and recorded as a question of its own.</Head>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          setEvents([]);
          setOn(!isOn);
        }}
      >
        <input
          class="mono"
          aria-label="statement"
          size={60}
          value={sql}
          disabled={isOn}
          onChange={(event) => amend({ sql: event.currentTarget.value })}
        />
        <button type="submit" class="primary">
          {isOn ? 'Stop' : 'Follow'}
        </button>
        <button type="button" disabled={!isOn} aria-pressed={isPaused} onClick={pause}>
          {isPaused ? `Go on (${waiting} waiting)` : 'Pause'}
        </button>
      </form>
      <Problem error={error} />
      <div class="card scroll" tabIndex={0} role="log" aria-label="events">
        {events.length === 0 && <span class="soft">{isOn ? 'Following. Nothing has happened yet.' : 'Not following.'}</span>}
        {events.map((event) => (
          <div key={event.id} class="mono">
            <span class={`tag ${tone[event.name] ?? ''}`}>{event.name}</span> {cellText(event.text.slice(0, 600), '')}
          </div>
        ))}
      </div>
    </>
  );
}

const tone: Readonly<Record<string, string>> = { insert: 'good', update: 'warm', delete: 'bad', leave: 'bad', error: 'bad' };
