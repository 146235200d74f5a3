//! The airline: reservations, balances and a ledger of what took effect, in a real embedded database. Every write is one
//! durable transaction; a rejected one changes nothing.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result};
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _, Table, TableDefinition,
    WriteTransaction,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{calls::Conversation, requests::Request};

/// Reservation to whether it is open.
const RESERVATIONS: TableDefinition<'_, &str, bool> = TableDefinition::new("reservations");
/// Payment method to balance.
const BALANCES: TableDefinition<'_, &str, f64> = TableDefinition::new("balances");
/// Request to the words it is rejected with.
const REJECTIONS: TableDefinition<'_, &str, &str> = TableDefinition::new("rejections");
/// Effects in their order, as JSON.
const LEDGER: TableDefinition<'_, u64, &str> = TableDefinition::new("ledger");
/// A caller's reference to its effect.
const REFERENCES: TableDefinition<'_, &str, u64> = TableDefinition::new("references");
/// Requests that were rejected in their order: the turn of each.
const REJECTED: TableDefinition<'_, u64, u64> = TableDefinition::new("rejected");
/// Turns of the conversation whose fault has happened.
const STRUCK: TableDefinition<'_, u64, ()> = TableDefinition::new("struck");

/// One write that took effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Effect {
    /// The turn of the conversation that sent it: for measuring alone.
    pub turn: usize,
    pub request: Request,
    /// The reservation that it made or changed.
    pub reservation: Option<String>,
    pub answer: String,
}

impl Effect {
    /// Whether this took back what `earlier` did: the same reservation was cancelled, or changed by the same tool to
    /// something else.
    fn takes_back(&self, earlier: &Self) -> bool {
        let changed =
            self.request.tool == earlier.request.tool && self.request.signature() != earlier.request.signature();
        self.reservation.is_some()
            && self.reservation == earlier.reservation
            && (self.request.tool == "cancel_reservation" || changed)
    }
}

/// The newest effect of a request and, where that does not stand any more, what took it back. `effects` in their order.
pub fn latest<'a>(effects: &'a [Effect], request: &Request) -> Option<(&'a Effect, Option<&'a Effect>)> {
    let signature = request.signature();
    let at = effects.iter().rposition(|effect| effect.request.signature() == signature)?;
    let (before, after) = effects.split_at_checked(at.saturating_add(1))?;
    let latest = before.last()?;
    Some((latest, after.iter().find(|effect| effect.takes_back(latest))))
}

/// The airline's database.
pub struct Airline {
    database: Database,
}

impl Airline {
    /// Opens the airline's file; a new one knows what the conversation begins with.
    pub fn open(path: &Path, conversation: &Conversation) -> Result<Self> {
        let known = path.exists();
        let airline = Self { database: Database::create(path)? };
        if known {
            return Ok(airline);
        }
        airline.change(|transaction| {
            let mut reservations = transaction.open_table(RESERVATIONS)?;
            for reservation in &conversation.reservations {
                reservations.insert(reservation.as_str(), true)?;
            }
            let mut balances = transaction.open_table(BALANCES)?;
            for (method, balance) in &conversation.balances {
                balances.insert(method.as_str(), balance)?;
            }
            let mut rejections = transaction.open_table(REJECTIONS)?;
            for (request, words) in &conversation.rejections {
                rejections.insert(request.to_string().as_str(), words.as_str())?;
            }
            transaction.open_table(LEDGER)?;
            transaction.open_table(REFERENCES)?;
            transaction.open_table(REJECTED)?;
            transaction.open_table(STRUCK)?;
            Ok(())
        })?;
        Ok(airline)
    }

    /// Decides a request: its answer, or the words it is rejected with. `made` is what a first booking is called.
    pub fn write(
        &self,
        turn: usize,
        request: &Request,
        reference: Option<&str>,
        made: Option<&str>,
    ) -> Result<Result<String, String>> {
        self.change(|transaction| {
            let (reservation, answer) = match decide(transaction, request, made)? {
                Ok(decided) => decided,
                Err(words) => {
                    let mut rejected = transaction.open_table(REJECTED)?;
                    let number = rejected.len()?;
                    rejected.insert(number, u64::try_from(turn)?)?;
                    return Ok(Err(words));
                }
            };
            let effect = Effect { turn, request: request.clone(), reservation, answer: answer.clone() };
            let mut ledger = transaction.open_table(LEDGER)?;
            let number = ledger.len()?;
            ledger.insert(number, serde_json::to_string(&effect)?.as_str())?;
            if let Some(reference) = reference {
                transaction.open_table(REFERENCES)?.insert(reference, number)?;
            }
            Ok(Ok(answer))
        })
    }

    /// The effect that was booked under a caller's reference.
    pub fn find(&self, reference: &str) -> Result<Option<Effect>> {
        let transaction = self.database.begin_read()?;
        let Some(number) = transaction.open_table(REFERENCES)?.get(reference)?.map(|number| number.value()) else {
            return Ok(None);
        };
        let ledger = transaction.open_table(LEDGER)?;
        let effect = ledger.get(number)?.context("a reference to no effect")?;
        Ok(Some(serde_json::from_str(effect.value())?))
    }

    /// All that took effect, in its order.
    pub fn effects(&self) -> Result<Vec<Effect>> {
        let ledger = self.database.begin_read()?.open_table(LEDGER)?;
        ledger.iter()?.map(|row| Ok(serde_json::from_str(row?.1.value())?)).collect()
    }

    /// The turns whose requests were rejected, in their order.
    pub fn rejected(&self) -> Result<Vec<usize>> {
        let rejected = self.database.begin_read()?.open_table(REJECTED)?;
        rejected.iter()?.map(|row| Ok(usize::try_from(row?.1.value())?)).collect()
    }

    /// The customer's own deposit.
    pub fn top_up(&self, method: &str, balance: f64) -> Result<()> {
        self.change(|transaction| Ok(transaction.open_table(BALANCES)?.insert(method, balance).map(drop)?))
    }

    /// Whether the fault of this turn is still to happen; from now on it has.
    pub fn strikes(&self, turn: usize) -> Result<bool> {
        let turn = u64::try_from(turn)?;
        self.change(|transaction| Ok(transaction.open_table(STRUCK)?.insert(turn, ())?.is_none()))
    }

    fn change<T>(&self, change: impl FnOnce(&WriteTransaction) -> Result<T>) -> Result<T> {
        let transaction = self.database.begin_write()?;
        let changed = change(&transaction)?;
        transaction.commit()?;
        Ok(changed)
    }
}

/// The reservation and the answer, or the words of a rejection; then nothing has changed.
fn decide(
    transaction: &WriteTransaction,
    request: &Request,
    made: Option<&str>,
) -> Result<Result<(Option<String>, String), String>> {
    if let Some(words) = transaction.open_table(REJECTIONS)?.get(request.signature().to_string().as_str())? {
        return Ok(Err(words.value().to_owned()));
    }
    let mut reservations = transaction.open_table(RESERVATIONS)?;
    let reservation = match request.text("reservation_id") {
        Some(known) => match reservations.get(known)?.map(|open| open.value()) {
            None => return Ok(Err(format!("Error: reservation {known} not found"))),
            Some(false) => return Ok(Err(format!("Error: reservation {known} is cancelled already"))),
            Some(true) => Some(known.to_owned()),
        },
        None if request.tool == "book_reservation" => Some(free(&reservations, made)?),
        None => None,
    };
    if let Err(words) = pay(&mut transaction.open_table(BALANCES)?, request)? {
        return Ok(Err(words));
    }
    if let Some(reservation) = &reservation {
        reservations.insert(reservation.as_str(), request.tool != "cancel_reservation")?;
    }
    let answer = json!({ "done": request.tool, "reservation_id": reservation }).to_string();
    Ok(Ok((reservation, answer)))
}

/// A name for a new reservation: that of the conversation, or one beside it where that is taken.
fn free(reservations: &Table<'_, &str, bool>, made: Option<&str>) -> Result<String> {
    let name = made.unwrap_or("BOOKED");
    if reservations.get(name)?.is_none() {
        return Ok(name.to_owned());
    }
    Ok(format!("{name}-{}", reservations.len()?))
}

/// Takes what the request costs from the payment methods whose balance is known: all of it or nothing.
fn pay(balances: &mut Table<'_, &str, f64>, request: &Request) -> Result<Result<(), String>> {
    let mut left = BTreeMap::new();
    for (method, amount) in costs(request) {
        let known = balances.get(method)?.map(|balance| balance.value());
        let Some(balance) = left.get(method).copied().or(known) else { continue };
        if balance < amount {
            return Ok(Err(format!("Error: not enough balance in payment method {method}")));
        }
        left.insert(method, balance - amount);
    }
    for (method, balance) in left {
        balances.insert(method, balance)?;
    }
    Ok(Ok(()))
}

/// What a request takes from which payment method.
fn costs(request: &Request) -> Vec<(&str, f64)> {
    let list = |name: &str| request.arguments.get(name).and_then(|list| list.as_array()).into_iter().flatten();
    let number = |of: &serde_json::Value, name: &str| of.get(name).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
    let booked =
        list("payment_methods").filter_map(|paid| Some((paid.get("payment_id")?.as_str()?, number(paid, "amount"))));
    let flights: f64 = list("flights").map(|flight| number(flight, "price")).sum();
    let bags = number(&request.arguments, "nonfree_baggages") * 50.0;
    let changed = request.text("payment_id").map(|method| (method, flights + bags));
    booked.chain(changed).collect()
}
