/** What a run says about itself at its end: above all how much of a thing it has tried, and which command tries all of it. */
export const told: string[] = [];

export function tell(line: string): void {
  told.push(line);
}
