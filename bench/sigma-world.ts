/** Sigma rules, the same conditions as SQL, and events of 30 fields that they are judged on: made from a seed. */

export interface MadeRule {
  readonly yaml: string;
  readonly sql: string;
}

export type Event = Readonly<Record<string, string | number | null>>;

const paths = ['Image', 'ParentImage', 'TargetFilename', 'ImageLoaded', 'CurrentDirectory'];
const lines = ['CommandLine', 'ParentCommandLine', 'TargetObject', 'Details', 'ScriptBlockText'];
const words = [
  'User',
  'LogonId',
  'IntegrityLevel',
  'Company',
  'Product',
  'Description',
  'OriginalFileName',
  'Computer',
  'Channel',
];
export const eventNumbers = ['EventID', 'ProcessId', 'ParentProcessId', 'LogonType', 'DestinationPort', 'SourcePort'];
const others = ['DestinationIp', 'Hashes', 'Provider_Name', 'UtcTime', 'RuleName'];
export const eventNames = [...paths, ...lines, ...words, ...eventNumbers, ...others];

/** Rules and events over one vocabulary, so that literals of rules are in many events and whole rules match few. */
export class SigmaWorld {
  #state: number;
  readonly #words: readonly string[];

  constructor(seed: number) {
    this.#state = seed;
    const syllables =
      'win sys32 cmd net power shell exec load inject crypt hash dump user admin host svc proxy task reg key tmp data'.split(' ');
    this.#words = Array.from({ length: 1_500 }, () => `${this.#pick(syllables)}${this.#pick(syllables)}${this.#below(40)}`);
  }

  rule(ordinal: number): MadeRule {
    const [path, line, word] = [this.#pick(paths), this.#pick(lines), this.#pick(words)];
    const [a, b, c, d] = [this.#word(), this.#word(), this.#word(), this.#word()];
    const head = `title: rule ${ordinal}\nlogsource: {product: windows}\ndetection:\n`;
    switch (ordinal % 10) {
      case 0: {
        const number = 1 + this.#below(40);
        return {
          yaml: `${head}  s:\n    EventID: ${number}\n    ${word}: '${a}'\n    ${line}|contains: ['-${b}', '-${c}']\n  condition: s`,
          sql: `EventID = ${number} AND "${word}" LIKE '${a}' AND ("${line}" LIKE '%-${b}%' OR "${line}" LIKE '%-${c}%')`,
        };
      }
      case 1:
        return {
          yaml: `${head}  s:\n    ${path}|endswith: '\\${a}.exe'\n    ${line}|re: '-${b}\\s+[a-z]+[0-9]{2,}'\n  condition: s`,
          sql: `"${path}" LIKE '%\\${a}.exe' AND matches('-${b}\\s+[a-z]+[0-9]{2,}', "${line}")`,
        };
      case 2:
        return {
          yaml: `${head}  s:\n    ${line}|contains|all: [' -${a}', ' -${b}']\n  f:\n    ParentImage|startswith: 'C:\\${c}\\'\n  g:\n    ${word}: null\n  condition: s and not 1 of f and not g`,
          sql: `"${line}" LIKE '% -${a}%' AND "${line}" LIKE '% -${b}%' AND NOT ifnull("ParentImage" LIKE 'C:\\${c}\\%', 0) AND NOT "${word}" IS NULL`,
        };
      case 3: {
        const port = 60_000 + this.#below(5_000);
        return {
          yaml: `${head}  s:\n    DestinationPort|gte: ${port}\n    ${path}|contains: '\\${a}\\'\n    ${word}|startswith: '${b}'\n  condition: s`,
          sql: `DestinationPort >= ${port} AND "${path}" LIKE '%\\${a}\\%' AND "${word}" LIKE '${b}%'`,
        };
      }
      default: {
        const list = [a, b, c].map((each) => `'\\${each}.exe'`).join(', ');
        const like = [a, b, c].map((each) => `"${path}" LIKE '%\\${each}.exe'`).join(' OR ');
        return {
          yaml: `${head}  i:\n    - ${path}|endswith: [${list}]\n    - OriginalFileName: '${a}.exe'\n  l:\n    ${line}|contains: ['${d}.dll', '/${b} ', '-${c}']\n  condition: all of them`,
          sql: `(${like} OR "OriginalFileName" LIKE '${a}.exe') AND ("${line}" LIKE '%${d}.dll%' OR "${line}" LIKE '%/${b} %' OR "${line}" LIKE '%-${c}%')`,
        };
      }
    }
  }

  event(): Event {
    const event: Record<string, string | number | null> = {};
    for (const name of paths) event[name] = `C:\\${this.#word()}\\${this.#word()}\\${this.#word()}.exe`;
    for (const name of lines) {
      event[name] = Array.from(
        { length: 6 },
        () => this.#pick(['', '-', '/', 'C:\\']) + this.#word() + this.#pick(['', '.dll', '.exe', '=1']),
      ).join(' ');
    }
    for (const name of words)
      event[name] = this.#below(8) === 0 ? null : name === 'OriginalFileName' ? `${this.#word()}.exe` : this.#word();
    for (const name of eventNumbers) event[name] = this.#below(name === 'EventID' ? 40 : 65_536);
    event['DestinationIp'] = `10.${this.#below(256)}.${this.#below(256)}.${this.#below(256)}`;
    event['Hashes'] = `MD5=${this.#hex(32)},SHA256=${this.#hex(64)}`;
    event['Provider_Name'] = 'Microsoft-Windows-Sysmon';
    event['UtcTime'] = `2024-05-01 10:00:${this.#below(60)}`;
    event['RuleName'] = '-';
    return event;
  }

  #hex(length: number): string {
    return Array.from({ length }, () => this.#below(16).toString(16)).join('');
  }

  /** Some words are in many events. */
  #word(): string {
    return this.#words[this.#below(3) === 0 ? this.#below(20) : this.#below(this.#words.length)]!;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)]!;
  }

  #below(bound: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 4_294_967_296) * bound);
  }
}
