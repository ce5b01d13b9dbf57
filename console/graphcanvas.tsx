/** A graph on a canvas, which thousands of nodes don't slow down: drag moves it, the wheel comes nearer, a click chooses. */
import { useEffect, useRef } from 'preact/hooks';
import type { Edge, Placed } from './layout.ts';

export interface Shown {
  readonly nodes: readonly Placed[];
  readonly edges: readonly Edge[];
}

interface GraphCanvasProps {
  readonly shown: Shown;
  readonly chosen: string;
  /** Drawn larger. */
  readonly roots: ReadonlySet<string>;
  readonly isOnPath: (edge: Edge) => boolean;
  onChoose(id: string): void;
  onExpand(id: string): void;
}

interface Look {
  x: number;
  y: number;
  scale: number;
}

const namedMax = 220;
const nearPx = 14;
const margin = 60;

export function GraphCanvas({ shown, chosen, roots, isOnPath, onChoose, onExpand }: GraphCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const look = useRef<Look | null>(null);
  const dragged = useRef<{ x: number; y: number; moved: boolean } | null>(null);

  const draw = (): void => {
    const element = canvas.current;
    if (element === null) return;
    const { clientWidth: width, clientHeight: height } = element;
    const ratio = devicePixelRatio;
    element.width = width * ratio;
    element.height = height * ratio;
    const { x, y, scale } = look.current ?? fit(shown.nodes, width, height);
    const pen = element.getContext('2d')!;
    const style = getComputedStyle(element);
    const colours = coloursOf(element);
    const colour = (name: keyof typeof colours): string => colours[name];
    pen.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * (width / 2 - x * scale), ratio * (height / 2 - y * scale));
    const at = new Map(shown.nodes.map((node) => [node.id, node]));
    const line = (edges: readonly Edge[], stroke: string, px: number): void => {
      pen.strokeStyle = stroke;
      pen.lineWidth = px / scale;
      pen.beginPath();
      for (const { from, to } of edges) {
        const [a, b] = [at.get(from), at.get(to)];
        if (a === undefined || b === undefined) continue;
        pen.moveTo(a.x, a.y);
        pen.lineTo(b.x, b.y);
      }
      pen.stroke();
    };
    pen.globalAlpha = shown.edges.length > 2_000 ? 0.35 : 1;
    line(shown.edges, colour('--soft'), 0.8);
    pen.globalAlpha = 1;
    line(
      shown.edges.filter(({ change }) => change === 'new'),
      colour('--good'),
      2.5,
    );
    pen.setLineDash([6 / scale, 4 / scale]);
    line(
      shown.edges.filter(({ change }) => change === 'gone'),
      colour('--bad'),
      2,
    );
    pen.setLineDash([]);
    line(shown.edges.filter(isOnPath), colour('--warm'), 2.5);
    const size = Math.max(shown.nodes.length > 600 ? 3 : 6, 1.6 / scale);
    for (const node of shown.nodes) {
      pen.beginPath();
      pen.arc(node.x, node.y, roots.has(node.id) ? size * 1.5 : size, 0, 7);
      pen.fillStyle = colour(node.id === chosen ? '--accent' : '--raised');
      pen.strokeStyle = colour('--accent');
      pen.lineWidth = Math.max(1.3, 0.7 / scale);
      pen.fill();
      pen.stroke();
    }
    pen.font = `${12 / Math.min(1.4, scale)}px ${style.fontFamily}`;
    pen.lineWidth = 3;
    for (const node of shown.nodes) {
      if (shown.nodes.length > namedMax && node.id !== chosen && !roots.has(node.id)) continue;
      pen.strokeStyle = colour('--raised');
      pen.fillStyle = colour('--ink');
      pen.strokeText(node.id.slice(0, 28), node.x + 10, node.y + 4);
      pen.fillText(node.id.slice(0, 28), node.x + 10, node.y + 4);
    }
  };
  useEffect(draw, [shown, chosen, isOnPath]);
  useEffect(() => {
    const observer = new ResizeObserver(draw);
    observer.observe(canvas.current!);
    return () => observer.disconnect();
  });

  const current = (): Look => {
    const { clientWidth, clientHeight } = canvas.current!;
    return (look.current ??= fit(shown.nodes, clientWidth, clientHeight));
  };
  const nearest = (event: MouseEvent): Placed | undefined => {
    const { clientWidth: width, clientHeight: height } = canvas.current!;
    const { x, y, scale } = look.current ?? fit(shown.nodes, width, height);
    const [px, py] = [(event.offsetX - width / 2) / scale + x, (event.offsetY - height / 2) / scale + y];
    let found: Placed | undefined;
    let least = (nearPx / scale) ** 2;
    for (const node of shown.nodes) {
      const square = (node.x - px) ** 2 + (node.y - py) ** 2;
      if (square > least) continue;
      least = square;
      found = node;
    }
    return found;
  };
  return (
    <canvas
      ref={canvas}
      class="picture graph"
      role="img"
      aria-label={`graph of ${shown.nodes.length} nodes; the table below lists the edges of the chosen one`}
      data-nodes={shown.nodes.length}
      onMouseDown={(event) => (dragged.current = { x: event.clientX, y: event.clientY, moved: false })}
      onMouseMove={(event) => {
        const from = dragged.current;
        if (from === null || event.buttons === 0) return;
        const view = current();
        view.x -= (event.clientX - from.x) / view.scale;
        view.y -= (event.clientY - from.y) / view.scale;
        const moved = from.moved || Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) > 2;
        dragged.current = { x: event.clientX, y: event.clientY, moved };
        draw();
      }}
      onClick={(event) => {
        const wasDragged = dragged.current?.moved === true;
        dragged.current = null;
        const node = wasDragged ? undefined : nearest(event);
        if (node) onChoose(node.id);
      }}
      onDblClick={(event) => {
        const node = nearest(event);
        if (node) onExpand(node.id);
      }}
      onWheel={(event) => {
        event.preventDefault();
        const view = current();
        view.scale = Math.min(8, Math.max(0.02, view.scale * Math.exp(-event.deltaY / 500)));
        draw();
      }}
    />
  );
}

/** As the theme says now: the pen knows no variables. */
function coloursOf(element: HTMLElement) {
  const of = (name: string): string => {
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  const found = {
    '--soft': of('--soft'),
    '--warm': of('--warm'),
    '--accent': of('--accent'),
    '--raised': of('--raised'),
    '--ink': of('--ink'),
    '--good': of('--good'),
    '--bad': of('--bad'),
  };
  element.style.color = '';
  return found;
}

/** All of it, in the middle. */
function fit(nodes: readonly Placed[], width: number, height: number): Look {
  let [minX, maxX, minY, maxY] = [-200, 200, -110, 110];
  for (const { x, y } of nodes) {
    minX = Math.min(minX, x);
    maxX = Math.max(maxX, x);
    minY = Math.min(minY, y);
    maxY = Math.max(maxY, y);
  }
  const scale = Math.min(width / (maxX - minX + 2 * margin), height / (maxY - minY + 2 * margin));
  return { x: (minX + maxX) / 2, y: (minY + maxY) / 2, scale: Math.max(0.02, scale) };
}
