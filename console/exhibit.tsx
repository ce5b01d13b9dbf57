/** Exhibits: answers under seal. Each is derived again from the log, and the seals are compared. */
import { useState } from 'preact/hooks';
import { data, json, post, terms } from './api.ts';
import { keepExhibit, keptExhibits } from './catalog.ts';
import { Fields, Head, Instant, Plain, Problem, useLoad } from './parts.tsx';
import { amend, go, place } from './place.ts';
import { literal } from './sql.ts';

interface Link {
  readonly seq: number;
  readonly act: string;
  readonly principal: string;
  readonly time: string;
  readonly seal: string;
  readonly statement: string | null;
  readonly text: string | null;
  readonly result_digest: string | null;
}

interface View {
  readonly exhibit_id: string;
  readonly title: string | null;
  readonly created_at: string;
  readonly opening_seal: string;
  readonly links: readonly Link[];
}

export function Exhibit() {
  const { id = '', sql = '' } = place.value.params;
  const purpose = { purpose: terms.value.purpose || 'analytics' };
  const [error, setError] = useState<unknown>(null);
  const [derived, setDerived] = useState<Readonly<Record<number, Readonly<Record<string, unknown>>>>>({});
  const {
    value,
    error: loadError,
    reload,
  } = useLoad(id === '' ? null : id, (signal) => json<View>(data(`/exhibits/${encodeURIComponent(id)}`, { signal })));
  const fail = (thrown: unknown): void => setError(thrown);
  const open = (event: SubmitEvent): void => {
    event.preventDefault();
    const title = ((event.currentTarget as HTMLFormElement).elements.namedItem('title') as HTMLInputElement).value;
    json<{ exhibit_id: string }>(data('/exhibits', post({ title, ...purpose }))).then(({ exhibit_id: made }) => {
      keepExhibit(made, title);
      go('exhibit', { id: made, sql });
    }, fail);
  };
  const put = (event: SubmitEvent): void => {
    event.preventDefault();
    const statement = ((event.currentTarget as HTMLFormElement).elements.namedItem('statement') as HTMLInputElement).value;
    data(`/exhibits/${encodeURIComponent(id)}/links`, post({ sql: statement, ...purpose })).then(reload, fail);
  };
  const derive = (seq: number): void => {
    json<{ rows: Record<string, unknown>[] }>(
      data('/query', post({ sql: `EXPLAIN_REPLAY(${literal(id)}, SEQ => ${seq})` })),
    ).then(({ rows }) => setDerived((before) => ({ ...before, [seq]: rows[0] ?? {} })), fail);
  };
  return (
    <>
      <Head title="Exhibits">An answer under seal can be derived again, byte for byte.</Head>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          amend({
            id: ((event.currentTarget as HTMLFormElement).elements.namedItem('exhibit') as HTMLInputElement).value.trim(),
          });
        }}
      >
        <label for="exhibit">Exhibit</label>
        <input id="exhibit" name="exhibit" size={38} value={id} list="exhibits" />
        <datalist id="exhibits">
          {keptExhibits.value.map(({ id: each, title }) => (
            <option value={each}>{title}</option>
          ))}
        </datalist>
        <button type="submit">Show</button>
      </form>
      <form class="bar" onSubmit={open}>
        <label for="title">New exhibit</label>
        <input id="title" name="title" required size={38} placeholder="title" />
        <button type="submit">Open</button>
      </form>
      <Problem error={error ?? loadError} />
      {value && (
        <>
          <h2>{value.title}</h2>
          <p class="small soft">
            opened <Instant ns={value.created_at} />, seal <code>{value.opening_seal}</code>
          </p>
          <Plain
            columns={['link', 'act', 'by', 'when', 'content', 'seal', '']}
            rows={value.links.map((each) => [
              String(each.seq),
              each.act,
              each.principal,
              <Instant ns={each.time} />,
              <code>{each.statement ?? each.text}</code>,
              <code title={each.seal}>{each.seal.slice(0, 16)}…</code>,
              each.statement === null ? (
                ''
              ) : (
                <>
                  <button type="button" onClick={() => derive(each.seq)}>
                    Derive again
                  </button>
                  {derived[each.seq] && (
                    <span class={`tag ${derived[each.seq]!['match'] === true ? 'good' : 'bad'}`} role="status">
                      {derived[each.seq]!['match'] === true ? 'the same bytes: the seals agree' : 'not the sealed answer'}
                    </span>
                  )}
                  {derived[each.seq] && <Fields of={Object.entries(derived[each.seq]!)} />}
                </>
              ),
            ])}
          />
          <form class="bar" onSubmit={put}>
            <label for="statement">Put under seal</label>
            <input id="statement" name="statement" class="mono" required size={56} defaultValue={sql} />
            <button type="submit" class="primary">
              Seal
            </button>
          </form>
        </>
      )}
    </>
  );
}
