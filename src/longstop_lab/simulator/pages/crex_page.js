"use strict";
// The state is all single letters; names stand in localStorage, and come when they come.
const settings = JSON.parse(document.getElementById("match").textContent);
const find = (selector, within = document) => within.querySelector(selector);
const post = (path, body) => fetch(path, { method: "POST", body: JSON.stringify(body) }).then((answer) => answer.json());
const playerName = (key) => localStorage.getItem(`p_${key}_name`) || "";
const teamName = (key) => localStorage.getItem(`t_${key}_name`) || "";
let state = null;
let polls = 0;

function make(tag, className, text) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

async function learn(players, teams) {
  const asked = { p: players, s: [], u: [], v: [], t: teams, lc: "en" };
  const names = await post("/mapping/getHomeMapData", asked);
  names.p.forEach((player) => localStorage.setItem(`p_${player.f_key}_name`, player.n));
  names.t.forEach((team) => {
    localStorage.setItem(`t_${team.f_key}_name`, team.n);
    localStorage.setItem(`t_${team.f_key}_short`, team.n.slice(0, 3).toUpperCase());
  });
}

function showScores() {
  const [batting, bowling] = state.a.split(".");
  const oversOf = (score) => score.split("(")[1];
  // The scores stand in the order of the innings, the teams in the order of who bats now.
  const [now, other] = state.k.startsWith("0/0(0.0") ? [state.j, state.k] : [state.k, state.j];
  [[batting, now], [bowling, other]].forEach(([team, score], nth) => {
    const block = find(`.team-content[data-team="${nth}"]`);
    find(".team-name", block).textContent = teamName(team);
    const [runs, overs] = block.querySelectorAll(".runs span");
    runs.textContent = score.split("(")[0];
    overs.textContent = `(${oversOf(score)})`;
  });
  const [over, ball] = oversOf(now).split(".").map(Number);
  const balls = over * 6 + ball;
  find(".team-run-rate .data").textContent = balls ? ((parseInt(now, 10) * 6) / balls).toFixed(2) : "--";
  find(".result-box span").textContent = state.B;
  const isResult = /won|tied|drawn|no result/i.test(state.B);
  find(".final-result.m-none").textContent = isResult ? state.B : "";
  const [team, odds] = document.querySelectorAll(".fav-odd .d-flex span");
  team.textContent = teamName(state.F.replace("^", ""));
  odds.textContent = state.R;
  document.title = `${teamName(batting)} ${now.replace("(", " (")}) live score`;
}

function overSlide(label, balls) {
  const slide = make("div", "overs-slide", "");
  slide.append(make("span", "", label));
  balls.forEach((ball) => slide.append(make("div", "over-ball", ` ${ball} `)));
  const worth = (part) => parseInt(part, 10) || (/^(wd|nb|b|lb)/.test(part) ? 1 : 0);
  const runs = balls.flatMap((ball) => ball.split("+")).reduce((sum, part) => sum + worth(part), 0);
  slide.append(make("span", "total", `= ${runs}`));
  return slide;
}

function showOvers() {
  const slides = [state.l, state.m, state.n].filter(Boolean).map((text) => text.split(":"))
    .sort((one, two) => one[0] - two[0])
    .map(([over, balls]) => overSlide(`${over}th Over:`, balls.split(".")));
  if (state.A) slides.push(overSlide("This Over:", state.A.split(".")));
  find("#slideOver").replaceChildren(...slides);
}

function playerBlock(name, score, more) {
  const block = make("div", "batsmen-partnership", "");
  block.append(make("div", "batsmen-name", name), make("div", "batsmen-score", `${score} ${more}`));
  return block;
}

function showPlayers() {
  const blocks = [];
  state.p.split(".").filter(Boolean).forEach((key, nth) => {
    const [runs, balls] = (nth ? state.s : state.q).replace("*", "").split(".");
    blocks.push(playerBlock(playerName(key), runs, `(${balls})`));
  });
  if (state.b) {
    const [runs, balls, wickets] = state.c.split(".").map(Number);
    blocks.push(playerBlock(playerName(state.b), `${wickets}-${runs}`, `(${Math.floor(balls / 6)}.${balls % 6})`));
  }
  find("app-match-live-player").replaceChildren(...blocks);
}

function showCommentary(items) {
  find("#commentary").replaceChildren(...items.filter((item) => item.type === "b").map((item) => {
    const card = make("div", "cm-b-roundcard", "");
    card.append(make("span", "cm-b-over", item.o), make("span", "cm-b-ballupdate", ` ${item.b} `));
    card.append(make("p", "cm-b-comment-c1", item.c1));
    return card;
  }));
}

function draw() {
  if (!state) return;
  showScores();
  showOvers();
  showPlayers();
}

async function poll() {
  try {
    const before = state && [state.B, state.j, state.k, state.A].join("|");
    const answer = await fetch(`/api/v3/getSV3?key=${settings.key}`);
    if (answer.ok) state = await answer.json();
    draw();
    if (state && before !== [state.B, state.j, state.k, state.A].join("|")) {
      const asked = { matchKey: settings.key, lastDocId: null, filters: {}, lang: "en" };
      showCommentary(await post("/commentary/v1/getBallFeeds", asked));
    }
    polls += 1;
    if (polls % 10 === 0) await fetch(`/api/v3/getSC4?key=${settings.key}`);
  } catch (error) {
    console.warn("asked in vain", error);
  } finally {
    setTimeout(poll, settings.pollSeconds * 1000);
  }
}

async function begin() {
  localStorage.setItem(`p_${settings.oldPlayer.key}_name`, settings.oldPlayer.name);
  poll();
  try {
    const card = await (await fetch(`/api/v3/getSC4?key=${settings.key}`)).json();
    const keys = [...new Set(card.flatMap((innings) => [...innings.b, ...innings.a]).map((line) => line.split(/[./]/)[0]))];
    await learn(keys.slice(0, 6), settings.teams);
    draw();
    const learnRest = () => learn(keys.slice(6), []).then(draw).catch(() => {});
    setTimeout(learnRest, settings.lateSeconds * 1000);
    setInterval(learnRest, 60000);
  } catch (error) {
    console.warn("no names", error);
  }
}

begin();
