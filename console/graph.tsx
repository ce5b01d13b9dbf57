/** Who is connected to whom around a node: expand, hide, a path between two, as of any instant. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { data, json, post } from './api.ts';
import { plural } from './format.ts';
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

const nodesMax = 600;
const edgesMax = 4_000;

/** The text behind a function's arguments. */
function asOf(at: string, believed: string): string {
  if (believed !== '') return ` AS OF SYSTEM TIME ${literal(believed)}`;
  return at === '' ? '' : ` AS OF ${literal(at)}`;
}

export function Graph() {
  const { node = '', to = '', at = '', believed = '', hops = '3' } = place.value.params;
  const [shown, setShown] = useState<{ nodes: readonly Placed[]; edges: readonly Edge[] }>({ nodes: [], edges: [] });
  const [chosen, setChosen] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [path, setPath] = useState<ReadonlySet<string>>(new Set());
  const nodes = useRef(new Map<string, Placed>());
  const edges = useRef(new Map<string, Edge>());

  const draw = (): void => {
    const list = [...nodes.current.values()];
    settle(list, [...edges.current.values()], list.length > 200 ? 60 : 160);
    setShown({ nodes: list, edges: [...edges.current.values()] });
  };
  const add = (id: string, beside: string): void => {
    if (nodes.current.has(id) || nodes.current.size >= nodesMax) return;
    const near = nodes.current.get(beside);
    const angle = nodes.current.size * 2.4;
    nodes.current.set(id, { id, x: (near?.x ?? 0) + Math.cos(angle) * 60, y: (near?.y ?? 0) + Math.sin(angle) * 60 });
  };
  const take = (rows: readonly EdgeRow[]): void => {
    for (const { from_id: from, to_id: end, nodeId, link_type: type } of rows) {
      const other = end ?? nodeId;
      add(from, other);
      add(other, from);
      if (nodes.current.has(from) && nodes.current.has(other))
        edges.current.set(`${from} ${other} ${type}`, { from, to: other, type });
    }
    draw();
  };
  const ask = (sql: string): Promise<readonly EdgeRow[]> =>
    json<{ rows: EdgeRow[] }>(data('/query', post({ sql }))).then(({ rows }) => rows);
  const fail = (thrown: unknown): void => setError(thrown);
  const expand = (id: string): void => {
    setError(null);
    add(id, '');
    ask(`NETWORK_EXPAND(${literal(id)}, MAX_HOPS => 1)${asOf(at, believed)} LIMIT ${edgesMax}`).then(take, fail);
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
      ask(
        `PATHS_BETWEEN(${literal(node)}, ${literal(to)}, MAX_HOPS => ${hops.replaceAll(/\D/g, '') || 3}, DIRECTION => 'out')${asOf(at, believed)} LIMIT 60`,
      ).then((rows) => {
        setError(null);
        take(rows);
        const first = rows.filter((row) => (row as unknown as { path: number }).path === 1);
        setPath(new Set(first.flatMap((row) => [`${row.from_id} ${row.to_id} ${row.link_type}`])));
      }, fail);
  }, [node, to, at, believed]);
  const [minX, maxX, minY, maxY] = bounds(shown.nodes);
  const around = shown.edges.filter(({ from, to: end }) => from === chosen || end === chosen);
  const where = new Map(shown.nodes.map((each) => [each.id, each]));
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
          amend({ node: field('node'), to: field('to'), at: field('at'), believed: field('believed') });
        }}
      >
        <label for="node">Around</label>
        <input id="node" name="node" size={14} key={`n${node}`} defaultValue={node} placeholder="key of a row" />
        <label for="to">to</label>
        <input id="to" name="to" size={14} key={`t${to}`} defaultValue={to} placeholder="or a path to" />
        <label for="at">true</label>
        <input id="at" name="at" size={12} defaultValue={at} placeholder="now" />
        <label for="believed">believed</label>
        <input id="believed" name="believed" size={20} defaultValue={believed} placeholder="now" />
        <button type="submit" class="primary">
          Show
        </button>
      </form>
      <Problem error={error} />
      {shown.nodes.length > 0 && (
        <svg
          class="picture"
          viewBox={`${minX - 60} ${minY - 34} ${maxX - minX + 120} ${maxY - minY + 68}`}
          style={{ height: '54vh' }}
          role="img"
          aria-label="graph; the table below lists the edges of the chosen node"
        >
          {shown.edges.map((edge) => {
            const [a, b] = [where.get(edge.from)!, where.get(edge.to)!];
            const isOnPath = path.has(`${edge.from} ${edge.to} ${edge.type}`);
            return (
              <line
                class={isOnPath ? 'cross' : 'edge'}
                x1={a.x}
                y1={a.y}
                x2={b.x}
                y2={b.y}
                style={{ strokeWidth: isOnPath ? 2.5 : 0.8 }}
              >
                <title>{edge.type}</title>
              </line>
            );
          })}
          {shown.nodes.map(({ id, x, y }) => (
            <g onClick={() => setChosen(id)} onDblClick={() => expand(id)}>
              <circle class={`node${id === chosen ? ' root' : ''}`} cx={x} cy={y} r={id === node || id === to ? 9 : 6} />
              {shown.nodes.length <= 160 && (
                <text x={x + 10} y={y + 4}>
                  {id.slice(0, 28)}
                </text>
              )}
            </g>
          ))}
        </svg>
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
          <Plain
            columns={['edge', 'from', 'to']}
            rows={around.slice(0, 60).map(({ from, to: end, type }) => [type, from, end])}
          />
        </section>
      )}
    </>
  );
}

function bounds(nodes: readonly Placed[]): [number, number, number, number] {
  let [minX, maxX, minY, maxY] = [-200, 200, -110, 110];
  for (const { x, y } of nodes) {
    minX = Math.min(minX, x);
    maxX = Math.max(maxX, x);
    minY = Math.min(minY, y);
    maxY = Math.max(maxY, y);
  }
  return [minX, maxX, minY, maxY];
}
