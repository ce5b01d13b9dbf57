/** Who is connected to whom around a node: expand, hide, a path between two, as of any instant. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { data, json, post } from './api.ts';
import { plural } from './format.ts';
import { GraphCanvas, type Shown } from './graphcanvas.tsx';
import { type Edge, type Placed, settle } from './layout.ts';
import { Head, Plain, Problem } from './parts.tsx';
import { amend, link, place } from './place.ts';
import { literal } from './sql.ts';

interface EdgeRow {
  readonly from_id: string;
  readonly to_id?: string;
  readonly nodeId: string;
  readonly link_type: string;
}

const nodesMax = 5_000;
const edgesMax = 20_000;
/** Work of the layout in one frame. */
const frameMs = 12;

/** The text behind a function's arguments. */
function asOf(at: string, believed: string): string {
  if (believed !== '') return ` AS OF SYSTEM TIME ${literal(believed)}`;
  return at === '' ? '' : ` AS OF ${literal(at)}`;
}

export function Graph() {
  const { node = '', to = '', at = '', believed = '', since = '', hops = '3', around: wide = '1' } = place.value.params;
  const around = wide.replaceAll(/\D/g, '') || '1';
  const [shown, setShown] = useState<Shown>({ nodes: [], edges: [] });
  const [chosen, setChosen] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [path, setPath] = useState<ReadonlySet<string>>(new Set());
  const nodes = useRef(new Map<string, Placed>());
  const edges = useRef(new Map<string, Edge>());

  const frame = useRef(0);
  /** Few nodes are shown in their places at once; many find them frame by frame. */
  const draw = (): void => {
    const all: Shown = { nodes: [...nodes.current.values()], edges: [...edges.current.values()] };
    const rounds = settle(all.nodes, all.edges, all.nodes.length > 200 ? 60 : 160);
    cancelAnimationFrame(frame.current);
    const goOn = (): void => {
      const began = performance.now();
      let isOver = false;
      while (!isOver && performance.now() - began < frameMs) isOver = rounds.next().done === true;
      setShown({ ...all });
      if (!isOver) frame.current = requestAnimationFrame(goOn);
    };
    goOn();
  };
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  const add = (id: string, beside: string): void => {
    if (nodes.current.has(id) || nodes.current.size >= nodesMax) return;
    const near = nodes.current.get(beside);
    const angle = nodes.current.size * 2.4;
    const away = 30 + 12 * Math.sqrt(nodes.current.size);
    nodes.current.set(id, { id, x: (near?.x ?? 0) + Math.cos(angle) * away, y: (near?.y ?? 0) + Math.sin(angle) * away });
  };
  const nameOf = ({ from_id: from, to_id: end, nodeId, link_type: type }: EdgeRow): string => `${from} ${end ?? nodeId} ${type}`;
  /** `before`: the same question about an earlier instant, where a difference is asked for. */
  const take = (rows: readonly EdgeRow[], before?: readonly EdgeRow[]): void => {
    const now = new Set(rows.map(nameOf));
    const then = before && new Set(before.map(nameOf));
    const changeOf = (name: string): Pick<Edge, 'change'> => {
      if (!now.has(name)) return { change: 'gone' };
      return then === undefined || then.has(name) ? {} : { change: 'new' };
    };
    for (const { from_id: from, to_id: end, nodeId, link_type: type } of [...rows, ...(before ?? [])]) {
      const other = end ?? nodeId;
      add(from, other);
      add(other, from);
      if (nodes.current.has(from) && nodes.current.has(other))
        edges.current.set(`${from} ${other} ${type}`, { from, to: other, type, ...changeOf(`${from} ${other} ${type}`) });
    }
    draw();
  };
  const ask = (sql: string): Promise<readonly EdgeRow[]> =>
    json<{ rows: EdgeRow[] }>(data('/query', post({ sql }))).then(({ rows }) => rows);
  /** About the instant that is shown, and about the one that it is held against. */
  const askBoth = (asked: (time: string) => string): Promise<[readonly EdgeRow[], (readonly EdgeRow[])?]> =>
    Promise.all([ask(asked(asOf(at, believed))), ...(since === '' ? [] : [ask(asked(asOf('', since)))])]) as Promise<
      [readonly EdgeRow[], (readonly EdgeRow[])?]
    >;
  const fail = (thrown: unknown): void => setError(thrown);
  const expand = (id: string): void => {
    setError(null);
    add(id, '');
    const steps = id === node ? around : 1;
    const asked = (time: string): string => `NETWORK_EXPAND(${literal(id)}, MAX_HOPS => ${steps})${time} LIMIT ${edgesMax}`;
    askBoth(asked).then(([rows, before]) => take(rows, before), fail);
  };
  const hide = (id: string): void => {
    nodes.current.delete(id);
    for (const [name, { from, to: end }] of edges.current) if (from === id || end === id) edges.current.delete(name);
    setChosen('');
    draw();
  };
  useEffect(() => {
    nodes.current.clear();
    edges.current.clear();
    setShown({ nodes: [], edges: [] });
    setPath(new Set());
    if (node === '') return;
    setChosen(node);
    if (to === '') expand(node);
    else
      askBoth(
        (time) =>
          `PATHS_BETWEEN(${literal(node)}, ${literal(to)}, MAX_HOPS => ${hops.replaceAll(/\D/g, '') || 3}, DIRECTION => 'out')${time} LIMIT 60`,
      ).then(([rows, before]) => {
        setError(null);
        take(rows, before);
        const first = rows.filter((row) => (row as unknown as { path: number }).path === 1);
        setPath(new Set(first.flatMap((row) => [`${row.from_id} ${row.to_id} ${row.link_type}`])));
      }, fail);
  }, [node, to, at, believed, since, around]);
  const links = shown.edges.filter(({ from, to: end }) => from === chosen || end === chosen);
  const changed = shown.edges.filter(({ change }) => change !== undefined);
  const isOnPath = useCallback(({ from, to: end, type }: Edge) => path.has(`${from} ${end} ${type}`), [path]);
  return (
    <>
      <Head title="Graph">
        {shown.nodes.length > 0 && (
          <>
            {plural(shown.nodes.length, 'node')}, {plural(shown.edges.length, 'edge')}
            {shown.nodes.length >= nodesMax && `; no more than ${nodesMax} are drawn`}
          </>
        )}
      </Head>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          const field = (name: string): string =>
            ((event.currentTarget as HTMLFormElement).elements.namedItem(name) as HTMLInputElement).value.trim();
          amend({
            node: field('node'),
            around: field('around'),
            to: field('to'),
            at: field('at'),
            believed: field('believed'),
            since: field('since'),
          });
        }}
      >
        <label for="node">Around</label>
        <input id="node" name="node" size={14} key={`n${node}`} defaultValue={node} placeholder="key of a row" />
        <label for="around">steps</label>
        <input id="around" name="around" size={2} inputMode="numeric" key={`a${around}`} defaultValue={around} pattern="[1-9]" />
        <label for="to">to</label>
        <input id="to" name="to" size={14} key={`t${to}`} defaultValue={to} placeholder="or a path to" />
        <label for="at">true</label>
        <input id="at" name="at" size={12} defaultValue={at} placeholder="now" />
        <label for="believed">believed</label>
        <input id="believed" name="believed" size={20} defaultValue={believed} placeholder="now" />
        <label for="since">changed since</label>
        <input id="since" name="since" size={20} defaultValue={since} placeholder="no difference" />
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <Problem error={error} />
      {shown.nodes.length > 0 && (
        <GraphCanvas
          shown={shown}
          chosen={chosen}
          roots={new Set([node, to])}
          isOnPath={isOnPath}
          onChoose={setChosen}
          onExpand={expand}
        />
      )}
      {since !== '' && shown.nodes.length > 0 && (
        <section class="card" aria-label="difference">
          <h2>
            {changed.length === 0 ? 'Nothing changed' : plural(changed.length, 'edge')} since {since}
          </h2>
          <Plain
            columns={['change', 'edge', 'from', 'to']}
            rows={changed.slice(0, 200).map(({ change, type, from, to: end }) => [change, type, from, end])}
          />
        </section>
      )}
      {chosen !== '' && shown.nodes.length > 0 && (
        <section class="card" aria-label="chosen node">
          <div class="bar">
            <h2>{chosen}</h2>
            <span class="spring" />
            <button type="button" onClick={() => expand(chosen)}>
              Expand
            </button>
            <button type="button" onClick={() => hide(chosen)}>
              Hide
            </button>
            <a class="button" href={link('graph', { node, to: chosen, at, believed })}>
              Path from {node}
            </a>
            <a class="button" href={link('graph', { node: chosen, at, believed })}>
              Begin here
            </a>
          </div>
          <Plain columns={['edge', 'from', 'to']} rows={links.slice(0, 60).map(({ from, to: end, type }) => [type, from, end])} />
        </section>
      )}
    </>
  );
}
