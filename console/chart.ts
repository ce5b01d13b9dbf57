/** Lines over time, by uPlot; loaded when a chart is first shown. */
import UPlot from 'uplot';

interface ChartTerms {
  /** What runs across: seconds since 1970, numbers, or a text for each whole number. */
  readonly across: 'time' | 'number' | readonly string[];
}

export function openChart(
  parent: HTMLElement,
  names: readonly string[],
  series: UPlot.AlignedData,
  { across }: ChartTerms = { across: 'time' },
): UPlot {
  const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);
  const probe = document.createElement('span');
  const resolved = (name: string): string => {
    probe.style.color = `var(${name})`;
    parent.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color || colour(name);
  };
  const lines = [resolved('--accent'), resolved('--warm')];
  const axis = { stroke: resolved('--soft'), grid: { stroke: resolved('--line'), width: 1 }, ticks: { show: false } };
  const plot = new UPlot(
    {
      width: widthIn(parent),
      height,
      tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: { x: { time: across === 'time' } },
      axes: [
        typeof across === 'string' ? axis : { ...axis, ...namedAxis(across) },
        { ...axis, size: 56 },
        { ...axis, side: 1, size: 96, scale: 'second', grid: { show: false } },
      ],
      series: [
        typeof across === 'string' ? {} : { value: (_: UPlot, at: number) => across[at] ?? '' },
        ...names.map((label, i) => ({ label, stroke: lines[i]!, width: 1.5, ...(i > 0 && { scale: 'second' }) })),
      ],
    },
    series,
    parent,
  );
  new ResizeObserver(() => plot.setSize({ width: widthIn(parent), height })).observe(parent);
  return plot;
}

const height = 200;
const widthIn = (parent: HTMLElement): number => Math.max(280, parent.clientWidth - 28);

/** A text at each whole number that has one. */
const namedAxis = (texts: readonly string[]): Pick<UPlot.Axis, 'values'> => ({
  values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? (texts[tick] ?? '').slice(0, 14) : '')),
});
