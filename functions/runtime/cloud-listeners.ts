/** For the functions of the WebSocket and the one that tells portals of news: which portals listen. */
export { createListenerTable as storedListeners } from '#control/adapters/apigateway/listeners.ts';
