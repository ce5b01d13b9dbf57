/** Branches as a graph: where each left its source. Fork, look, compare and delete. */
import { useState } from 'preact/hooks';
import { data, json, post, Refusal } from './api.ts';
import { branches, builtIn, loadCatalog, types } from './catalog.ts';
import { Dialog, Head, Instant, Plain, Problem, useLoad } from './parts.tsx';
import { link } from './place.ts';
import { name } from './sql.ts';

const column = 150;
const line = 44;

export function Branches() {
  const [error, setError] = useState<unknown>(null);
  const [doomed, setDoomed] = useState<string | null>(null);
  const list = branches.value.toSorted((a, b) => (BigInt(a.forked_at ?? 0) < BigInt(b.forked_at ?? 0) ? -1 : 1));
  const [other, setOther] = useState('');
  const fork = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const value = (field: string): string => (form.elements.namedItem(field) as HTMLInputElement).value.trim();
    data(`/v1/namespaces/${encodeURIComponent(value('name'))}/branch`, post({ branch_from: value('source') }))
      .then(() => {
        form.reset();
        setError(null);
        return loadCatalog();
      })
      .catch((thrown: unknown) => setError(thrown));
  };
  const remove = (branch: string): void => {
    data(`/schema/branches/${encodeURIComponent(branch)}`, { method: 'DELETE' })
      .then(loadCatalog, (thrown: unknown) => setError(thrown))
      .finally(() => setDoomed(null));
  };
  const x = (i: number): number => 30 + i * column;
  const y = (branch: string): number => 34 + list.findIndex((each) => each.name === branch) * line;
  const width = Math.max(620, x(list.length) + 120);
  return (
    <>
      <Head title="Branches">Each reads what its source held when it left, and what was written to it since.</Head>
      <svg
        class="picture"
        viewBox={`0 0 ${width} ${list.length * line + 26}`}
        role="img"
        aria-label="branches by the order of their forks; the table below says the same"
      >
        {list.map((each, i) => (
          <g>
            <line class="edge" x1={x(i)} y1={y(each.name)} x2={width - 130} y2={y(each.name)} />
            {each.source !== null && (
              <path
                class="edge"
                d={`M${x(i) - 46} ${y(each.source)} C ${x(i) - 16} ${y(each.source)}, ${x(i) - 30} ${y(each.name)}, ${x(i)} ${y(each.name)}`}
              />
            )}
            <circle class={`node${each.source === null ? ' root' : ''}`} cx={x(i)} cy={y(each.name)} r="6" />
            <text x={width - 122} y={y(each.name) + 4}>
              {each.name}
            </text>
          </g>
        ))}
      </svg>
      <Problem error={error} />
      <form class="bar" onSubmit={fork}>
        <label for="fork">New branch</label>
        <input id="fork" name="name" required maxLength={128} />
        <label for="source">from</label>
        <select id="source" name="source">
          {list.map((each) => (
            <option>{each.name}</option>
          ))}
        </select>
        <button type="submit" class="primary">
          Fork
        </button>
      </form>
      <Plain
        columns={['branch', 'from', 'forked', 'holds', '']}
        rows={list.map((each) => [
          <a href={`#/home?branch=${encodeURIComponent(each.name)}`}>{each.name}</a>,
          each.source ?? '–',
          each.forked_at === null ? '–' : <Instant ns={String(each.forked_at)} />,
          each.shares,
          each.name === 'main' ? (
            ''
          ) : (
            <span class="bar">
              <button type="button" onClick={() => setOther(each.name)}>
                Compare with {each.source}
              </button>
              <button type="button" class="bad" onClick={() => setDoomed(each.name)}>
                Delete
              </button>
            </span>
          ),
        ])}
      />
      {other !== '' && <Compared branch={other} source={list.find((each) => each.name === other)?.source ?? 'main'} />}
      {doomed !== null && (
        <Doom
          name={doomed}
          words="The branch and all that was written to it alone are gone for good."
          close={() => setDoomed(null)}
          go={() => remove(doomed)}
        />
      )}
    </>
  );
}

/** Says what is destroyed and asks for its name. */
export function Doom({ name: wanted, words, close, go }: { name: string; words: string; close: () => void; go: () => unknown }) {
  const [text, setText] = useState('');
  return (
    <Dialog title={`Delete ${wanted}?`} close={close}>
      <p>{words}</p>
      <div class="bar">
        <label for="doom">Its name</label>
        <input id="doom" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <button type="button" class="bad" disabled={text !== wanted} onClick={go}>
          Delete for good
        </button>
      </div>
    </Dialog>
  );
}

/** How many rows of each type one has and the other has not. */
function Compared({ branch, source }: { branch: string; source: string }) {
  const named = types.value
    .filter(({ name: each, properties }) => Object.keys(properties).length > 0 && !builtIn.has(each))
    .slice(0, 30);
  const { value, error } = useLoad(`${branch}/${source}`, async (signal) => {
    const versions = async (type: string, on: string): Promise<Set<string>> => {
      const headers = { 'x-service-branch': on };
      const sql = `SELECT _pk, system_from FROM ${name(type)} AS OF CURRENT LIMIT 20000`;
      const reply = await json<{ rows: { _pk: string; system_from: string | number }[] }>(
        data('/query', { ...post({ sql }), signal, headers }),
      ).catch((thrown: unknown) => {
        // A type that was registered after the fork has no rows there.
        if (thrown instanceof Refusal && thrown.code === 'REL_UNKNOWN_TYPE') return { rows: [] };
        throw thrown;
      });
      return new Set(reply.rows.map((row) => `${row._pk} ${row.system_from}`));
    };
    return Promise.all(
      named.map(async ({ name: type }) => {
        const [here, there] = await Promise.all([versions(type, branch), versions(type, source)]);
        return {
          type,
          only: [...here].filter((each) => !there.has(each)),
          missing: [...there].filter((each) => !here.has(each)),
        };
      }),
    );
  });
  if (error) return <Problem error={error} />;
  if (!value) return <p class="soft">Comparing …</p>;
  const differing = value.filter(({ only, missing }) => only.length + missing.length > 0);
  if (differing.length === 0)
    return (
      <p class="soft">
        {branch} and {source} hold the same rows.
      </p>
    );
  return (
    <Plain
      columns={['type', `only in ${branch}`, `only in ${source}`]}
      rows={differing.map(({ type, only, missing }) => [
        <a href={link('query', { sql: `SELECT * FROM ${name(type)} AS OF CURRENT`, branch })}>{type}</a>,
        only
          .slice(0, 12)
          .map((each) => each.split(' ')[0])
          .join(', ') || '–',
        missing
          .slice(0, 12)
          .map((each) => each.split(' ')[0])
          .join(', ') || '–',
      ])}
    />
  );
}
