/** Search as one types, with facets and highlights; as of any instant. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { data, json, post } from './api.ts';
import { keyOf, types } from './catalog.ts';
import { plural, textOf } from './format.ts';
import { Cell, Head, Problem, useLoad } from './parts.tsx';
import { amend, link, place } from './place.ts';

interface Reply {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly estimatedTotalHits: number;
  readonly processing_time_ms: number;
  readonly facets?: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export function Search() {
  const { q = '', type: wanted = '', at = '', believed = '' } = place.value.params;
  const searchable = types.value.filter(({ properties }) => Object.values(properties).some(({ type }) => type === 'string'));
  const type = wanted || searchable.find(({ name }) => name !== 'Story')?.name || '';
  const definition = types.value.find(({ name }) => name === type);
  const [chosen, setChosen] = useState<Readonly<Record<string, string>>>({});
  const [text, setText] = useState(q);
  useEffect(() => setChosen({}), [type]);
  const columns = Object.entries(definition?.properties ?? {})
    .filter(([, { type: each, masked }]) => each === 'string' && !masked)
    .map(([each]) => each);
  const facets = columns.filter((each) => each !== keyOf(type)).slice(0, 4);
  const body = {
    query: text,
    type,
    limit: 50,
    facets,
    ...(at && { as_of: at }),
    ...(believed && { as_of_system: believed }),
    compute_attributes: Object.fromEntries(columns.slice(0, 6).map((each) => [`shown_${each}`, `HIGHLIGHT(${each})`])),
  };
  const { value, error, isLoading } = useLoad(text.trim() === '' || type === '' ? null : JSON.stringify(body), (signal) =>
    json<Reply>(data('/search', { ...post(body), signal })),
  );
  const rows = (value?.rows ?? []).filter((row) =>
    Object.entries(chosen).every(([column, each]) => textOf(row[column]) === each),
  );
  return (
    <>
      <Head title="Search">Two slips in a word do no harm.</Head>
      <div class="bar">
        <input
          type="search"
          aria-label="search"
          size={34}
          value={text}
          placeholder="words"
          onInput={(event) => {
            setText(event.currentTarget.value);
            amend({ q: event.currentTarget.value });
          }}
        />
        <label for="in">in</label>
        <select id="in" value={type} onChange={(event) => amend({ type: event.currentTarget.value })}>
          {searchable.map(({ name }) => (
            <option>{name}</option>
          ))}
        </select>
        {(
          [
            ['at', 'true', at],
            ['believed', 'believed', believed],
          ] as const
        ).map(([name, label, value]) => (
          <>
            <label for={name}>{label}</label>
            <input
              id={name}
              size={12}
              placeholder="now"
              value={value}
              onChange={(event) => amend({ [name]: event.currentTarget.value.trim() })}
            />
          </>
        ))}
      </div>
      <Problem error={error} />
      {value && (
        <>
          <p class="small soft" role="status" aria-busy={isLoading}>
            {plural(value.estimatedTotalHits, 'hit')}, {value.processing_time_ms.toFixed(1)} ms
          </p>
          <div class="bar">
            {Object.entries(value.facets ?? {}).flatMap(([column, values]) =>
              Object.entries(values)
                .slice(0, 6)
                .map(([each, n]) => {
                  const isOn = chosen[column] === each;
                  return (
                    <button
                      type="button"
                      aria-pressed={isOn}
                      onClick={() =>
                        setChosen(
                          isOn
                            ? Object.fromEntries(Object.entries(chosen).filter(([other]) => other !== column))
                            : { ...chosen, [column]: each },
                        )
                      }
                    >
                      {each} <span class="soft small">{n}</span>
                    </button>
                  );
                }),
            )}
          </div>
          {rows.map((row) => (
            <article class="card">
              <h2>
                <a href={link('row', { type, key: textOf(row['_pk'] ?? row[keyOf(type)] ?? row['id']) })}>
                  {textOf(row[keyOf(type)] ?? row['id'] ?? row['_pk'])}
                </a>{' '}
                <span class="small faint">{Number(row['_score'] ?? 0).toFixed(2)}</span>
              </h2>
              <dl class="fields">
                {columns.slice(0, 6).map((each) => (
                  <>
                    <dt>{each}</dt>
                    <dd>
                      {typeof row[`shown_${each}`] === 'string' ? (
                        highlighted(row[`shown_${each}`] as string)
                      ) : (
                        <Cell value={row[each]} name={each} />
                      )}
                    </dd>
                  </>
                ))}
              </dl>
            </article>
          ))}
        </>
      )}
    </>
  );
}

/** Marks of the server as elements: a text of the store never becomes markup. */
function highlighted(text: string): ComponentChildren {
  return text
    .split(/(<em>[^]*?<\/em>)/)
    .map((part) => (part.startsWith('<em>') ? <em class="hit">{part.slice(4, -5)}</em> : part));
}
