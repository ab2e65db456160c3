"use strict";
// Everything shown comes from four calls; what the push channel says is shown at once, and never believed for long.
const settings = JSON.parse(document.getElementById("match").textContent);
const find = (selector) => document.querySelector(selector);
let event = null;

async function ask(part) {
  const answer = await fetch(`/api/v1/event/${settings.id}${part}`, { cache: "no-cache" });
  return answer.ok ? answer.json() : null;
}

function list(selector, lines) {
  find(selector).replaceChildren(...lines.map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
}

function showEvent() {
  if (!event) return;
  const goals = (score) => (score.display === undefined ? "-" : score.display);
  find(".event-score").textContent = `${goals(event.homeScore)} : ${goals(event.awayScore)}`;
  find(".event-status").textContent = event.status.description;
}

function showIncidents(body) {
  list(".event-incidents", (body ? body.incidents : []).map((incident) => {
    const who = incident.player || incident.playerIn || {};
    const minute = incident.time === 999 ? "" : `${incident.time ?? ""}'`;
    return `${minute} ${incident.incidentType} ${incident.incidentClass || incident.text || ""} ${who.name || ""}`;
  }));
}

function showLineups(body) {
  const entries = body && body.home ? [...body.home.players, ...body.away.players] : [];
  list(".event-lineups", entries.filter((entry) => !entry.substitute).map((entry) => {
    const rating = entry.statistics && entry.statistics.rating;
    return `${entry.shirtNumber} ${entry.player.name}${rating ? ` (${rating})` : ""}`;
  }));
}

function showStatistics(body) {
  const groups = body ? body.statistics[0].groups : [];
  list(".event-statistics", groups.flatMap((group) => group.statisticsItems).map(
    (item) => `${item.home} ${item.name} ${item.away}`,
  ));
}

async function poll() {
  try {
    const [one, incidents, lineups, statistics] = await Promise.all(
      ["", "/incidents", "/lineups", "/statistics"].map(ask),
    );
    event = one ? one.event : event;
    showEvent();
    showIncidents(incidents);
    showLineups(lineups);
    showStatistics(statistics);
  } catch (error) {
    console.warn("asked in vain", error);
  } finally {
    setTimeout(poll, settings.pollSeconds * 1000);
  }
}

function put(target, path, value) {
  const names = path.split(".");
  const last = names.pop();
  names.reduce((part, name) => (part[name] ??= {}), target)[last] = value;
}

function listen() {
  const channel = new WebSocket(`ws://${location.host}/push/${settings.id}`);
  channel.onmessage = (message) => {
    const { id, ...changed } = JSON.parse(message.data);
    if (!event || id !== settings.id) return;
    Object.entries(changed).forEach(([path, value]) => put(event, path, value));
    showEvent();
  };
  channel.onclose = () => setTimeout(listen, 2000);
}

poll();
listen();
