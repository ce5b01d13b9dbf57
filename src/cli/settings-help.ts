/** The settings table as text: `annals serve --help` and README's table come from `config.ts`. */
import { settingsTable } from '../config.ts';

export const settingsHelp = `\nSettings (environment over config file over default):\n${Object.entries(settingsTable)
  .map(([settingName, setting]) => `  ${settingName} = ${setting.defaultText}\n      ${setting.help}`)
  .join('\n')}\n  SERVICE_RANKING_<Type> = unset\n      default ranking of a type, rule:field:value[,rule:field:value]\n`;
