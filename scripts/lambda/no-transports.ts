/** What pino has for transports in threads of their own and for several streams: 5 KB of a bundle. Functions write their log themselves, to one stream. */
export const transportModules = /[\\/]pino[\\/]lib[\\/](transport|multistream)\.js$/;

/** The CommonJS module that stands in for either. */
export const withoutTransports =
  "module.exports = () => { throw new Error('a cloud function writes its log itself, to one stream'); };";
