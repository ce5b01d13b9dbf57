/** What agents remember: recall with its score taken apart, as of any instant, and what superseded what. */
import { useState } from 'preact/hooks';
import { data, json, parseExact, post, terms } from './api.ts';
import { textOf } from './format.ts';
import { Fields, Head, Instant, Plain, Problem, useLoad } from './parts.tsx';
import { amend, link, place } from './place.ts';

interface Tool {
  readonly content: readonly { readonly text: string }[];
}
type Item = Readonly<Record<string, unknown>>;

export function Memory() {
  const { q = '', at = '' } = place.value.params;
  const [text, setText] = useState(q);
  const purpose = terms.value.purpose || 'analytics';
  const headers = { 'x-service-purpose': purpose };
  const { value: recalled, error } = useLoad(q === '' ? null : `${q} ${at}`, async (signal) => {
    const reply = await json<Tool>(
      data('/memory/recall', { ...post({ query: q, detailed: true, top_k: 20, ...(at && { as_of: at }) }), headers, signal }),
    );
    return parseExact(reply.content[0]!.text) as { memories: Item[] };
  });
  const { value: all, error: listError } = useLoad('items', async (signal) => {
    const ask = (sql: string): Promise<{ rows: Item[] }> => json(data('/query', { ...post({ sql }), headers, signal }));
    const [items, sessions] = await Promise.all([
      ask('SELECT * FROM MemoryItem WHERE system_to = 9223372036854775807 ORDER BY valid_from LIMIT 500'),
      ask('SELECT * FROM AgentSession AS OF CURRENT LIMIT 100'),
    ]);
    return { items: items.rows, sessions: sessions.rows };
  });
  return (
    <>
      <Head title="Memory">Recall is asked with the purpose {purpose}, and leaves a ToolCall of its own.</Head>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          amend({ q: text });
        }}
      >
        <label for="recall">Recall</label>
        <input id="recall" size={34} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <label for="then">as of</label>
        <input
          id="then"
          size={20}
          placeholder="now"
          value={at}
          onChange={(event) => amend({ at: event.currentTarget.value.trim() })}
        />
        <button type="submit" class="primary">
          Recall
        </button>
      </form>
      <Problem error={error} />
      {recalled && recalled.memories.length === 0 && <p class="soft">Nothing comes to mind.</p>}
      {recalled?.memories.map((item) => (
        <article class="card">
          <h2>{textOf(item['content'])}</h2>
          <Fields of={Object.entries(item).filter(([each]) => each !== 'content')} />
        </article>
      ))}
      <Problem error={listError} />
      {all && (
        <>
          <h2>Sessions</h2>
          <Plain
            columns={['session', 'begun']}
            rows={all.sessions.map((row) => [textOf(row['session_id'] ?? row['id']), <Instant ns={textOf(row['valid_from'])} />])}
          />
          <h2>Items</h2>
          <Plain
            columns={['content', 'session', 'class', 'confidence', 'true from', 'true to', '']}
            rows={all.items.map((row) => [
              <span class={textOf(row['valid_to']).startsWith('9223372036854775') ? '' : 'soft'}>{textOf(row['content'])}</span>,
              textOf(row['session_id'] ?? ''),
              textOf(row['memory_class'] ?? ''),
              textOf(row['confidence'] ?? ''),
              <Instant ns={textOf(row['valid_from'])} />,
              <Instant ns={textOf(row['valid_to'])} />,
              <a href={link('row', { type: 'MemoryItem', key: textOf(row['id']) })}>history</a>,
            ])}
          />
        </>
      )}
    </>
  );
}
