//! What an agent asks the airline to do: each write call as a type of its own, and the window that permits it.

use keepspan::{Action, Canonical, ContextState, Signature, Spans};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A write call as a conversation has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    pub tool: String,
    pub arguments: Value,
}

impl Request {
    /// What tells the same call again, whatever the order of its arguments: the signature of the typed request.
    pub fn signature(&self) -> Signature {
        Signature::of(&self.tool, &self.arguments)
    }

    /// A typed request as the airline gets it.
    pub fn of<A: Action + Serialize>(action: &A) -> serde_json::Result<Self> {
        Ok(Self { tool: A::NAME.to_owned(), arguments: serde_json::to_value(action)? })
    }

    /// The text of an argument.
    pub fn text(&self, argument: &str) -> Option<&str> {
        self.arguments.get(argument)?.as_str()
    }
}

/// What the agent at the airline's desk holds. Texts enter by this routing alone.
#[derive(ContextState)]
pub struct Desk {
    #[instruction(roles("system", "user"))]
    pub asked: Spans,
    /// Reservations and customers as read: what a write depends on.
    #[precondition(tools("get_*"))]
    pub records: Spans,
    #[negative_result(on_error)]
    pub failed: Spans,
    #[evictable(otherwise)]
    pub work: Spans,
}

#[derive(Clone, Debug, Serialize, Deserialize, Canonical)]
#[serde(deny_unknown_fields)]
pub struct Flight {
    flight_number: String,
    date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Canonical)]
#[serde(deny_unknown_fields)]
pub struct Passenger {
    first_name: String,
    last_name: String,
    dob: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, Canonical)]
#[serde(deny_unknown_fields)]
pub struct Payment {
    payment_id: String,
    amount: f64,
}

#[derive(Debug, Serialize, Deserialize, Action)]
#[serde(deny_unknown_fields)]
#[action(state = Desk, requires(records), name = "book_reservation")]
pub struct Book {
    user_id: String,
    origin: String,
    destination: String,
    flight_type: String,
    cabin: String,
    flights: Vec<Flight>,
    passengers: Vec<Passenger>,
    payment_methods: Vec<Payment>,
    total_baggages: u32,
    nonfree_baggages: u32,
    insurance: String,
}

#[derive(Debug, Serialize, Deserialize, Action)]
#[serde(deny_unknown_fields)]
#[action(state = Desk, requires(records), name = "update_reservation_flights")]
pub struct ChangeFlights {
    reservation_id: String,
    cabin: String,
    flights: Vec<Flight>,
    payment_id: String,
}

#[derive(Debug, Serialize, Deserialize, Action)]
#[serde(deny_unknown_fields)]
#[action(state = Desk, requires(records), name = "update_reservation_baggages")]
pub struct ChangeBaggages {
    reservation_id: String,
    total_baggages: u32,
    nonfree_baggages: u32,
    payment_id: String,
}

#[derive(Debug, Serialize, Deserialize, Action)]
#[serde(deny_unknown_fields)]
#[action(state = Desk, requires(records), name = "update_reservation_passengers")]
pub struct ChangePassengers {
    reservation_id: String,
    passengers: Vec<Passenger>,
}

/// Cannot be taken back, so it runs on first-hand evidence only.
#[derive(Debug, Serialize, Deserialize, Action)]
#[serde(deny_unknown_fields)]
#[action(state = Desk, requires(records), destructive, name = "cancel_reservation")]
pub struct Cancel {
    reservation_id: String,
}

#[derive(Debug, Serialize, Deserialize, Action)]
#[serde(deny_unknown_fields)]
#[action(state = Desk, requires(records), name = "send_certificate")]
pub struct SendCertificate {
    user_id: String,
    amount: f64,
}

/// Depends on nothing that was read.
#[derive(Debug, Serialize, Deserialize, Action)]
#[serde(deny_unknown_fields)]
#[action(state = Desk, name = "transfer_to_human_agents")]
pub struct Transfer {
    summary: String,
}

/// Runs `$then` with the typed request of `$request`, by its tool's name; an error where no type is of that name.
macro_rules! typed {
    ($request:expr, $action:ident => $then:expr) => {{
        let request: &$crate::requests::Request = $request;
        $crate::requests::typed!(request, $action => $then, Book, ChangeFlights, ChangeBaggages, ChangePassengers, Cancel,
            SendCertificate, Transfer)
    }};
    ($request:ident, $action:ident => $then:expr, $($of:ident),*) => {
        match $request.tool.as_str() {
            $(<$crate::requests::$of as keepspan::Action>::NAME => {
                let $action: $crate::requests::$of = serde_json::from_value($request.arguments.clone())?;
                $then
            })*
            tool => anyhow::bail!("`{tool}` is no write call of this airline"),
        }
    };
}
pub(crate) use typed;
