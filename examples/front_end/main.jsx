import { createRoot } from "react-dom/client";
import Chat from "./Chat.jsx";

createRoot(document.getElementById("chat")).render(<Chat />);
